"""Starts and stops real servers for tests: free loopback ports, readiness by polling, output shown when one fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

GPUWATCH = [sys.executable, "-m", "gpuwatch"]
EXPORTER = [sys.executable, "-m", "gpuwatch_exporters"]


def free_port() -> int:
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def get(url: str, timeout: float = 10) -> tuple[int, str]:
    """Status and body of a GET; an HTTP error status is an answer, not an exception."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode()


def get_json(url: str, timeout: float = 10) -> Any:
    status, body = get(url, timeout)
    assert status == 200, f"{url} answered {status}: {body[:300]}"
    return json.loads(body)


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 30, every: float = 0.1) -> None:
    """Polls `ready` until it holds; an OSError or a failed assertion means not yet."""
    end = time.monotonic() + seconds
    last: Exception | None = None
    while time.monotonic() < end:
        try:
            if ready():
                return
        except (OSError, AssertionError, KeyError) as err:
            last = err
        time.sleep(every)
    raise TimeoutError(f"{what}: not within {seconds:.0f} s (last: {last})")


@contextlib.contextmanager
def running(
    command: list[str], log: Path, ready: Callable[[], bool], seconds: float = 30
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `command` until the block ends; its output goes to `log` and is shown when it does not become ready."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"}
        )
    try:

        def alive_and_ready() -> bool:
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


@contextlib.contextmanager
def prometheus(program: str, folder: Path, scrape_configs: list[dict[str, Any]], **extra: Any) -> Iterator[str]:
    """A real Prometheus with these scrape configurations; yields its address."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": scrape_configs, **extra}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    address = f"http://127.0.0.1:{port}"
    with running(command, folder / "prometheus.log", lambda: get(f"{address}/-/ready")[0] == 200):
        yield address


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """Instant query on a Prometheus; the result vector."""
    result: list[dict[str, Any]] = get_json(f"{address}/api/v1/query?query={quote(expression)}")["data"]["result"]
    return result
