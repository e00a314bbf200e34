"""What systemd hears, on a socket in the file system and in the abstract namespace."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuwatch_exporters.serving.notify import Notifier

from tests.exporters.serving.harness import SOON, served
from tests.servers import wait_for


@contextlib.contextmanager
def listener(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + address[1:] if address.startswith("@") else address)
        sock.settimeout(5)
        yield sock


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "path" else f"@gpuwatch-{secrets.token_hex(8)}"


def test_messages_arrive_and_a_status_is_sent_when_it_changes(address: str) -> None:
    with listener(address) as sock:
        notifier = Notifier({"NOTIFY_SOCKET": address})
        notifier.send("READY=1", "MAINPID=1")
        for told in ("collecting", "collecting", "cycle failed:\nno page"):
            notifier.status(told)
        notifier.send("STOPPING=1")
        heard = [sock.recv(1000).decode() for _ in range(4)]
    assert heard == ["READY=1\nMAINPID=1", "STATUS=collecting", "STATUS=cycle failed: no page", "STOPPING=1"]


@pytest.mark.parametrize(
    "environment",
    [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}, {"NOTIFY_SOCKET": "/nowhere/notify"}],
)
def test_without_anybody_who_listens_nothing_happens(environment: dict[str, str]) -> None:
    notifier = Notifier(environment)
    notifier.send("READY=1")
    notifier.status("fine")


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_a_sign_of_life_is_owed_only_when_it_is_awaited_of_this_process(
    variables: dict[str, str], seconds: float | None
) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/x", **variables}).watchdog_seconds == seconds
    assert Notifier(variables).watchdog_seconds is None


@pytest.mark.server
def test_a_service_tells_its_life_and_keeps_silent_when_a_cycle_hangs(tmp_path: Path, address: str) -> None:
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "900000"}
    heard: list[str] = []
    with listener(address) as sock:

        def said(line: str) -> bool:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    heard.extend(sock.recv(1000).decode().splitlines())
            return line in heard

        with served(tmp_path, environment=environment) as service:
            assert service.service.wait_seconds() == pytest.approx(0.3)
            wait_for("ready", lambda: said("READY=1"), every=SOON)
            wait_for("its state", lambda: said("STATUS=collecting"), every=SOON)
            service.service.tick()
            assert said("WATCHDOG=1")
            service.page.unlink()
            wait_for("the failure", lambda: said("STATUS=cycle failed: no page"), every=SOON)
            service.page.write_text("hang")
            service.service.cycles.stale_seconds = 0.2
            wait_for("the hanging cycle", service.service.cycles.stuck, every=SOON)
            said("")
            heard.clear()
            service.service.tick()
            assert said("STATUS=a cycle hangs; no values are served")
            assert "WATCHDOG=1" not in heard
        assert said("STOPPING=1")
