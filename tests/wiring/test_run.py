"""The daemon as a process: serves, says where, ends cleanly, and names a port that is taken."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.server

DEMO = "from gpuwatch.wiring import demo_daemon, run; run(demo_daemon(port={port}))"


@pytest.fixture
def demo(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", DEMO.format(port=0)], stdout=subprocess.PIPE, stderr=stderr)
    yield process, log
    if process.poll() is None:
        process.kill()
    process.wait(10)
    process.stdout.close()


def address(log: Path, process) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def ready(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("never ready")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_ends_cleanly_when_asked(demo, how):
    process, log = demo
    url = address(log, process)
    ready(url)
    with httpx.Client(base_url=url, trust_env=False) as client:
        page, metrics = client.get("/"), client.get("/metrics")
        evaluation = client.get("/api/v1/evaluation")
    assert page.headers["content-type"].startswith("text/html")
    assert evaluation.headers["x-evaluation-id"] in evaluation.text
    assert "gpuwatch_ready 1.0" in metrics.text
    before = time.monotonic()
    process.send_signal(how)
    assert process.wait(15) == 0
    assert time.monotonic() - before < 10
    assert process.stdout.read() == b""  # what it says goes to stderr
    assert "Traceback" not in log.read_text()


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
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert f"cannot_listen cannot listen on 127.0.0.1:{port}" in done.stdout, done.stderr
