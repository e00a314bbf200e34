"""Starts and stops real servers for tests: free loopback ports, readiness by polling, output shown when one fails."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

GPUWATCH = [sys.executable, "-m", "gpuwatch"]
EXPORTER = [sys.executable, "-m", "gpuwatch_exporters"]


def free_port() -> int:
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def fetch(url: str, timeout: float = 10, **headers: str) -> Answer:
    """A GET; an HTTP error status is an answer, not an exception."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:
            return Answer(answer.status, dict(answer.headers), answer.read())
    except urllib.error.HTTPError as err:
        with err:
            return Answer(err.code, dict(err.headers), err.read())


def get(url: str, timeout: float = 10) -> tuple[int, str]:
    """Status and text of a GET."""
    answer = fetch(url, timeout)
    return answer.status, answer.body.decode()


def get_json(url: str, timeout: float = 10) -> Any:
    status, body = get(url, timeout)
    assert status == 200, f"{url} answered {status}: {body[:500]}"
    return json.loads(body)


def wait_for(what: str, ready: Callable[[], object], seconds: float = 30, every: float = 0.1) -> Any:
    """Polls `ready` until it gives something true, and gives that; a refused or unreadable answer means not yet."""
    end = time.monotonic() + seconds
    last: Exception | None = None
    while time.monotonic() < end:
        try:
            if found := ready():
                return found
        except (OSError, AssertionError, LookupError, ValueError) as err:
            last = err
        time.sleep(every)
    raise TimeoutError(f"{what}: not within {seconds:.0f} s (last: {last})")


@contextlib.contextmanager
def running(
    command: list[str], log: Path, ready: Callable[[], object], seconds: float = 30, out: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `command` until the block ends; its output goes to `log` and is shown when it does not become ready.

    `out` takes its standard output apart from what it says on stderr.
    """
    with log.open("ab") as stderr, (out or log).open("ab") as stdout:
        process = subprocess.Popen(
            command, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"}
        )
    try:

        def alive_and_ready() -> object:
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}")
            return ready()

        try:
            wait_for(" ".join(command[:4]), alive_and_ready, seconds)
        except (TimeoutError, RuntimeError) as err:
            raise RuntimeError(f"{err}\n{log.read_text(errors='replace')[-3000:]}") from err
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


def announced(log: Path) -> str:
    """The address that a daemon on any free port (`--port 0`) tells in its log, or "" as long as it has not."""
    found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
    return found[0] if found else ""


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves `handler` in threads of this process; yields HOST:PORT."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class QuietHandler(BaseHTTPRequestHandler):
    """Answers without a line on stderr for each request."""

    def log_message(self, *_: object) -> None:
        return

    def send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, text in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def pages(texts: Mapping[str, str]) -> Iterator[str]:
    """Serves path -> exposition text; yields HOST:PORT. A path that is not there, or whose text is "", answers 503."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = texts.get(self.path, "").encode()
            self.send(200 if body else 503, "text/plain; version=0.0.4; charset=utf-8", body)

    with serving(Handler) as address:
        yield address


@dataclass(frozen=True)
class Prometheus:
    """Asks a running server at `url`."""

    url: str

    def api(self, path: str, **parameters: str | float) -> Any:
        """`data` of one API answer; an error answer raises with the server's words."""
        return get_json(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=20)["data"]

    def instant(self, query: str) -> list[dict[str, Any]]:
        return list(self.api("query", query=query)["result"])

    def number(self, query: str) -> float | None:
        """The value of the first series, None when there is none."""
        result = self.instant(query)
        return float(result[0]["value"][1]) if result else None

    def range(self, query: str, seconds: int = 20) -> list[dict[str, Any]]:
        now = time.time()
        return list(self.api("query_range", query=query, start=now - seconds, end=now, step=2)["result"])

    def wait_for(self, query: str, seconds: float = 60) -> list[dict[str, Any]]:
        """Polls until the query has a result."""
        found: list[dict[str, Any]] = wait_for(query, lambda: self.instant(query), seconds, every=0.3)
        return found


@contextlib.contextmanager
def prometheus(program: str, folder: Path, config: dict[str, Any] | Path, *options: str) -> Iterator[Prometheus]:
    """A real Prometheus, its data in `folder`, on this configuration or file; scrapes each second unless told else."""
    folder.mkdir(parents=True, exist_ok=True)
    file = config if isinstance(config, Path) else folder / "prometheus.yml"
    if not isinstance(config, Path):
        pace = dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), "1s")
        file.write_text(yaml.safe_dump({"global": pace, **config}))
    port = free_port()
    command = [
        program, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", *options,
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running(command, folder / "prometheus.log", lambda: get(f"{url}/-/ready")[0] == 200):
        yield Prometheus(url)
