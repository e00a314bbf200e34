"""The daemon as a process: serves, says where, ends cleanly, and names a port that is taken."""

from __future__ import annotations

import signal
import socket
import sys
import time

import pytest

from tests.processes import python
from tests.servers import announced, fetch, free_port, running, wait_for

pytestmark = pytest.mark.server

DEMO = (
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # under nohup it would be ignored
    "from gpuwatch.wiring import demo_daemon, run; run(demo_daemon(port={port}))"
)

SERVE = (
    "from gpuwatch.config import load_config; from gpuwatch.wiring import build_daemon, run; "
    "run(build_daemon(load_config({config!r})))"
)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_serves_and_ends_cleanly_when_asked(tmp_path, how):
    log, out = tmp_path / "log", tmp_path / "out"
    with running([sys.executable, "-c", DEMO.format(port=0)], log, lambda: announced(log), out=out) as process:
        url = announced(log)
        wait_for("ready", lambda: fetch(f"{url}/readyz").status == 200, seconds=60)
        page, metrics, evaluation = (fetch(f"{url}{path}") for path in ("/", "/metrics", "/api/v1/evaluation"))
        before = time.monotonic()
        process.send_signal(how)
        assert process.wait(15) == 0
        assert time.monotonic() - before < 10
    assert page.headers["content-type"].startswith("text/html")
    assert evaluation.headers["x-evaluation-id"].encode() in evaluation.body
    assert b"gpuwatch_ready 1.0" in metrics.body
    assert out.read_bytes() == b""  # what it says goes to stderr
    assert "Traceback" not in log.read_text()


def test_whoever_finds_the_demo_finds_an_evaluation(tmp_path):
    log = tmp_path / "log"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-c", DEMO.format(port=port)], log, lambda: fetch(f"{url}/healthz").status == 200):
        assert fetch(f"{url}/readyz").status == 200
        assert fetch(f"{url}/api/v1/recommendations").status == 200


def test_it_ends_soon_while_a_source_keeps_it_waiting(tmp_path):
    log = tmp_path / "log"
    with socket.socket() as silent:  # takes connections, and never answers one
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        config = tmp_path / "gw.toml"
        config.write_text(
            f'[listen]\nport = 0\n[store]\nurl = ""\n[[source]]\nkind = "prometheus"\ntimeout_seconds = 120\n'
            f'url = "http://127.0.0.1:{silent.getsockname()[1]}"\n'
        )
        code = SERVE.format(config=str(config))
        with running([sys.executable, "-c", code], log, lambda: announced(log)) as process:
            wait_for("asked", lambda: _connected(silent), seconds=30)
            assert fetch(f"{announced(log)}/readyz").status == 503
            before = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert time.monotonic() - before < 15


def _connected(listening: socket.socket) -> bool:
    listening.settimeout(0.2)
    try:
        _kept.append(listening.accept()[0])
    except TimeoutError:
        return False
    return True


_kept: list[socket.socket] = []  # a connection that is collected would be closed, which is an answer


def test_a_port_that_is_taken_is_named():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        code = f"""
from gpuwatch.errors import GpuwatchError
try:
    {DEMO.format(port=port).replace("; ", chr(10) + "    ")}
except GpuwatchError as err:
    print(err.code, err.what)
"""
        done = python(code)
    assert f"cannot_listen cannot listen on 127.0.0.1:{port}" in done.stdout, done.stderr
