"""slurmrestd as it is met: versions, tokens, late answers, broken ones and none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from gpuwatch_exporters.slurm.ask.errors import CallError
from gpuwatch_exporters.slurm.ask.rest import Rest
from gpuwatch_exporters.slurm.exporter import Settings, SlurmExporter

from gpuwatch.clock import FixedClock
from gpuwatch.errors import SettingsError
from tests.exporters.slurm.page import Page
from tests.exporters.slurm.situation import NOW, printed
from tests.servers import QuietHandler, serving

pytestmark = pytest.mark.server


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime.fromtimestamp(NOW, UTC))


class Stub(QuietHandler, BaseHTTPRequestHandler):
    """slurmrestd with two versions of its interface."""

    token: ClassVar[str] = "secret"
    seen: ClassVar[list[str]] = []
    delay: ClassVar[float] = 0
    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        self.seen.append(self.path)
        if self.headers.get("X-SLURM-USER-TOKEN") != self.token or self.headers.get("X-SLURM-USER-NAME") != "ann":
            self.send(401, "text/plain", b"Authentication failure")
            return
        if self.path == "/openapi/v3":
            paths = [f"/slurm/{v}/{c}/" for v in ("v0.0.9", "v0.0.41", "v0.0.42") for c in ("nodes", "jobs")]
            paths += [f"/slurm/v0.0.42/{call}/" for call in ("partitions", "reservations")]
            body = "{" + ", ".join(f'"{path}": {{}}'.replace("/", "\\/") for path in paths) + "}"
            self.send(200, "application/json", body.encode())
            return
        time.sleep(self.delay)
        _, _, version, call, _ = self.path.split("/")
        self.send(self.status, "application/json", printed(call, version).encode())


@pytest.fixture
def stub() -> Iterator[str]:
    handler: type[BaseHTTPRequestHandler] = type("OneStub", (Stub,), {"seen": []})
    with serving(handler) as address:
        yield f"http://{address}"


def rest_of(url: str, folder: Path, **changes: str) -> Rest:
    token = folder / "token"
    if not token.exists():
        token.write_text("SLURM_JWT=secret\n")
    return Rest(url, token_file=token, user="ann", **changes)


def test_slurmrestd_is_asked_in_its_newest_version(stub: str, tmp_path: Path, clock: FixedClock) -> None:
    page = Page(SlurmExporter(rest_of(stub, tmp_path), Settings(), clock).cycle())
    assert page.get("up") == 1
    assert page.get("schema_info", source="slurmrestd", schema="v0.0.42", slurm_version="24.11.5") == 1
    assert page.get("gpus_allocated", gpu_type="h100") == 14
    golden = Page((Path(__file__).parent / "golden.prom").read_text())
    told = {k: v for k, v in page.samples.items() if not k[0].startswith(("call", "schema"))}
    assert told.items() <= golden.samples.items()


def test_a_version_may_be_asked_for_and_one_that_is_not_offered_is_told(stub: str, tmp_path: Path) -> None:
    rest = rest_of(stub, tmp_path, version="v0.0.41")
    assert next(iter(rest.ask("nodes", 5).rows("nodes")))["name"] == "gpu001"
    with pytest.raises(CallError, match="offers no reservations"):
        rest.ask("reservations", 5)
    with pytest.raises(CallError, match=r"offers no v0\.0\.7"):
        rest_of(stub, tmp_path, version="v0.0.7").ask("nodes", 5)


def test_a_version_that_is_gone_is_looked_for_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = type("Replaced", (Stub,), {"seen": []})
    with serving(handler) as address:
        rest = rest_of(f"http://{address}", tmp_path)
        rest.ask("nodes", 5)
        rest.ask("nodes", 5)
        assert handler.seen.count("/openapi/v3") == 1
        monkeypatch.setattr(handler, "status", 404)
        with pytest.raises(CallError, match="404"):
            rest.ask("nodes", 5)
        rest_path = handler.seen[-1]
        monkeypatch.setattr(handler, "status", 200)
        rest.ask("nodes", 5)
        assert handler.seen[-2:] == ["/openapi/v3", rest_path]


def test_a_token_is_read_anew_for_each_call(stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = rest_of(stub, tmp_path)
    (tmp_path / "token").write_text("old")
    with pytest.raises(CallError, match="401") as caught:
        rest.ask("nodes", 5)
    assert caught.value.code == "not_allowed"
    assert "old" not in str(caught.value.lines())
    (tmp_path / "token").write_text("secret")
    rest.ask("nodes", 5)
    (tmp_path / "token").unlink()
    with pytest.raises(CallError, match="cannot read the token"):
        rest.ask("nodes", 5)
    monkeypatch.setenv("SLURM_JWT", "secret")
    Rest(stub, user="ann").ask("nodes", 5)


def test_slurmrestd_late_or_broken_or_gone(stub: str, tmp_path: Path) -> None:
    with serving(type("Late", (Stub,), {"delay": 1.0, "seen": []})) as address, pytest.raises(CallError) as caught:
        rest_of(f"http://{address}", tmp_path).ask("nodes", 0.3)
    assert caught.value.code == "timeout"
    with serving(type("Broken", (Stub,), {"status": 500, "seen": []})) as address, pytest.raises(CallError) as caught:
        rest_of(f"http://{address}", tmp_path).ask("nodes", 5)
    assert caught.value.code == "http_status"
    with pytest.raises(CallError) as caught:
        rest_of(f"unix:{tmp_path}/none", tmp_path).ask("nodes", 1)
    assert caught.value.code == "unreachable"


def test_an_answer_that_stops_half_way_ends_at_the_deadline(tmp_path: Path) -> None:
    def half(stub: Stub) -> None:
        stub.send_response(200)
        stub.send_header("Content-Length", "1000")
        stub.end_headers()
        time.sleep(0.3)
        stub.wfile.write(b"{")
        stub.wfile.flush()
        time.sleep(1)

    with serving(type("Half", (Stub,), {"do_GET": half, "seen": []})) as address:
        began = time.monotonic()
        with pytest.raises(CallError) as caught:
            rest_of(f"http://{address}", tmp_path).ask("nodes", 0.5)
        assert caught.value.code == "timeout"
        assert time.monotonic() - began < 0.75


def test_slurmrestd_below_a_path_of_a_proxy(tmp_path: Path) -> None:
    def get(stub: Stub) -> None:
        assert stub.path.startswith("/site/slurm-api/")
        stub.path = stub.path.removeprefix("/site/slurm-api")
        Stub.do_GET(stub)

    with serving(type("Proxy", (Stub,), {"do_GET": get, "seen": []})) as address:
        answer = rest_of(f"http://{address}/site/slurm-api/", tmp_path).ask("nodes", 5)
        assert next(iter(answer.rows("nodes")))["name"] == "gpu001"


@pytest.mark.parametrize("token", ["one\ntwo", "t\u00f6ken", "\u20ac"])
def test_a_token_that_no_header_can_hold_is_told(token: str, stub: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(CallError, match="is no token") as caught:
        rest_of(stub, tmp_path).ask("nodes", 5)
    assert caught.value.code == "not_allowed"
    assert token not in str(caught.value.lines())
    with pytest.raises(SettingsError, match="is no name"):
        Rest(stub, user=token)


@pytest.mark.parametrize(
    "url",
    [
        "slurm:6820", "ftp://host", "http://", "http://ann:secret@host:6820", "ftp://ann:secret@host:port",
        "http://host:port", "http://host:99999",
        "http://[::1", "unix:", "unix://host/path",
    ],
)  # fmt: skip
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Rest(url)
    assert "secret" not in " ".join(caught.value.lines())
