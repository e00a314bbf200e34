"""A real Prometheus on a free loopback port, and pages for it to scrape."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import yaml

BINARY = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(
    BINARY is None or PROMTOOL is None, reason="prometheus and promtool are not installed"
)


@contextmanager
def pages(texts: Mapping[str, str]) -> Iterator[str]:
    """Serves path -> exposition text; yields HOST:PORT. A path whose text is "" answers 503."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = texts.get(self.path, "").encode()
            self.send_response(200 if body else 503)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def prometheus(folder: Path, scrape_configs: list[dict], backfill: str | None = None) -> Iterator[str]:
    """Starts it on `scrape_configs` every second; `backfill` is OpenMetrics text with timestamps. Yields its URL."""
    assert BINARY is not None
    data = folder / "data"
    if backfill is not None:
        text = folder / "backfill.txt"
        text.write_text(backfill)
        command = [str(PROMTOOL), "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    config = folder / "prometheus.yml"
    config.write_text(
        yaml.safe_dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": scrape_configs})
    )
    port = _free_port()
    log = (folder / "prometheus.log").open("wb")
    process = subprocess.Popen(
        [
            BINARY,
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--storage.tsdb.retention.time=30d",
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: _ready(url), process=process, log=folder / "prometheus.log")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        log.close()


def eventually(
    holds: Callable[[], bool],
    *,
    seconds: float = 40,
    process: subprocess.Popen | None = None,
    log: Path | None = None,
) -> None:
    """Polls until `holds`; fails the test when it does not, or when the process has ended."""
    deadline = time.monotonic() + seconds
    while not holds():
        told = log.read_text(errors="replace")[-2000:] if log else ""
        assert process is None or process.poll() is None, f"it ended early\n{told}"
        assert time.monotonic() < deadline, f"did not come true in {seconds} s\n{told}"
        time.sleep(0.1)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=1, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
