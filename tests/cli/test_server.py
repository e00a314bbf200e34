"""--server against a small HTTP server that answers well, badly, late or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.render.documents import placement_document
from tests.cli.conftest import Run
from tests.processes import python
from tests.render.evaluations import a_placement, an_evaluation
from tests.render.reports import SNAPSHOT
from tests.servers import QuietHandler, serving

pytestmark = pytest.mark.server

JSON, PROBLEM, HTML = "application/json", "application/problem+json", "text/html; charset=utf-8"
EVALUATION = TypeAdapter(Evaluation).dump_json(an_evaluation()).decode()
PLACEMENT = json.dumps(placement_document(a_placement(), an_evaluation()))


class Daemon:
    """Answers by path; `wait` holds every answer back until it is set."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, str, str]] = {
            "/api/v1/evaluation": (200, JSON, EVALUATION),
            "/api/v1/snapshot": (200, JSON, dump_snapshot(SNAPSHOT)),
            "/api/v1/placements": (200, JSON, PLACEMENT),
        }
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.drip_seconds = 0.0  # between two bytes of a body
        self.wait = threading.Event()
        self.wait.set()
        daemon = self

        class Handler(QuietHandler):
            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                daemon.asked.append((self.command, self.path, body, self.headers.get("Authorization")))
                daemon.wait.wait(30)
                status, kind, text = daemon.answers.get(self.path, (404, HTML, "<h1>no</h1>"))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client that gave up has gone
                    self.send(status, kind, text.encode()) if not daemon.drip_seconds else self.drip(text.encode())

            def drip(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(daemon.drip_seconds)

            do_GET = do_POST = answer  # noqa: N815  # the names that http.server looks for

        self.handler = Handler
        self.url = ""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    with serving(made.handler) as address:
        made.url = f"http://{address}"
        yield made
        made.wait.set()


def test_the_daemons_evaluation_prints_as_one_in_process(run: Run, daemon: Daemon, wired: Any) -> None:
    for form in ("json", "table", "csv"):
        ended = run("recommend", "--server", f"{daemon.url}/", "-o", form)
        assert ended.code == 0
        assert ended.out == run("recommend", "--trace", "demo", "-o", form).out
    assert len(wired.specs) == 3
    assert daemon.asked[0] == ("GET", "/api/v1/evaluation", None, None)


def test_doctor_and_record_fetch_the_snapshot(run: Run, daemon: Daemon) -> None:
    assert json.loads(run("doctor", "--server", daemon.url, "-o", "json").out)["counts"]["GPUs"] == 7
    assert run("snapshot", "record", "--server", daemon.url).out == dump_snapshot(SNAPSHOT)


def test_place_posts_what_was_asked_and_prints_the_answer(run: Run, daemon: Daemon) -> None:
    ended = run("place", "--server", daemon.url, "--gpus", "2", "--cpu", "8", "--gpu-model", "T4", "-o", "json")
    assert json.loads(ended.out) == json.loads(PLACEMENT)
    assert "n1 (H100-80) 2 members on GPU 0-1" in run("place", "--server", daemon.url, "--gpus", "2").out
    method, path, body, _ = daemon.asked[1]
    assert (method, path) == ("POST", "/api/v1/placements")
    assert body == {
        "gpus": 2,
        "members": 1,
        "milligpu": 1000,
        "gpu_model": ["T4"],
        "cpu": "8",
        "same_nvlink_domain": False,
        "policy": "fgd",
        "top": 5,
    }


def test_the_token_is_sent_and_never_printed(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    daemon.answers["/api/v1/evaluation"] = (403, PROBLEM, json.dumps({"title": "Forbidden", "detail": "read only"}))
    ended = run("recommend", "--server", daemon.url, "--token-file", token, "-vv")
    assert daemon.asked[0][3] == "Bearer s3cret"
    assert "answered 403: Forbidden: read only" in ended.err
    assert "s3cret" not in ended.err
    token.write_text("two words")
    assert run("recommend", "--server", daemon.url, "--token-file", token).code == 1
    assert run("recommend", "--server", daemon.url, "--token-file", tmp_path / "none").code == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (503, PROBLEM, '{"title": "Stale", "detail": "the snapshot is 900 s old"}'),
            "503: Stale: the snapshot is 900 s",
        ),
        ((422, PROBLEM, '{"detail": "no policy is called x", "todo": "choose fgd"}'), "called x\ntried: GET"),
        ((422, PROBLEM, '{"detail": "no policy is called x", "todo": "choose fgd"}'), "to do: choose fgd"),
        ((500, HTML, "<html>secret trace</html>"), "500: Internal Server Error (text/html"),
        ((200, HTML, "<html>a router's page</html>"), "answered text/html where JSON was due"),
        ((200, JSON, "{"), "cannot read"),
        ((200, JSON, "[]"), "cannot read"),
        ((200, JSON, EVALUATION.replace('"cluster"', '"klaster"')), "cannot read"),
        ((404, PROBLEM, "[1]"), "404: Not Found"),
    ],
)
def test_a_bad_answer_is_told_in_three_lines_at_most(
    answer: tuple[int, str, str], told: str, run: Run, daemon: Daemon
) -> None:
    daemon.answers["/api/v1/evaluation"] = answer
    ended = run("recommend", "--server", daemon.url)
    assert (ended.code, ended.out) == (1, "")
    assert told in ended.err
    assert 2 <= len(ended.err.splitlines()) <= 3


def test_a_daemon_that_hangs_is_given_up(run: Run, daemon: Daemon) -> None:
    daemon.wait.clear()
    ended = run("recommend", "--server", daemon.url, "--timeout", "0.2")
    assert ended.code == 1
    assert "did not answer within 0.2 s" in ended.err


def test_a_daemon_whose_answer_drips_is_given_up(run: Run, daemon: Daemon) -> None:
    daemon.drip_seconds = 0.05  # each read is quick, the whole would take minutes
    began = time.monotonic()
    ended = run("recommend", "--server", daemon.url, "--timeout", "0.3")
    assert time.monotonic() - began < 10
    assert ended.code == 1
    assert "did not answer within 0.3 s" in ended.err


def test_nobody_listening(run: Run) -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else gets the port meanwhile
        taken.bind(("127.0.0.1", 0))
        ended = run("recommend", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert ended.code == 1
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["error", "tried", "to do"]


@pytest.mark.parametrize("url", ["127.0.0.1:9438", "ftp://h", "http://", "http://[::1", "http://h:port"])
def test_what_is_no_url_is_a_usage_fault(url: str, run: Run) -> None:
    ended = run("recommend", "--server", url)
    assert ended.code == 2
    assert "--server" in ended.err


@pytest.mark.parametrize(
    "command", ["recommend --kind idle_held", "forecast", "fragmentation", "doctor", "place --gpus 1"]
)
def test_reading_a_daemon_needs_only_the_cli_extra(command: str, daemon: Daemon) -> None:
    absent = ("numpy", "pandas", "statsmodels", "fastapi", "uvicorn", "sqlalchemy", "torch")
    argv = [*command.split(), "--server", daemon.url, "-o", "json"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        f"from gpuwatch.__main__ import main; sys.exit(main({argv!r}))"
    )
    done = python(code)
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    assert json.loads(done.stdout)["evaluation_id"] == "0123456789ab"
