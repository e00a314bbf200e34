"""A real Prometheus on free loopback ports, with pages to scrape and our rules at a fast pace."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alert_rules.promtool import RULES


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def pages(by_path: dict[str, str]) -> Iterator[str]:
    """Serves texts by path; gives host:port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = by_path.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Prometheus:
    """Asks a running server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **parameters: str | float) -> Any:
        """`data` of one API answer; an error answer raises with the server's words."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()[:500]}") from error

    def instant(self, query: str) -> list[dict[str, Any]]:
        return list(self.get("query", query=query)["result"])

    def range(self, query: str, seconds: int = 20) -> list[dict[str, Any]]:
        now = time.time()
        return list(self.get("query_range", query=query, start=now - seconds, end=now, step=2)["result"])

    def wait_for(self, query: str, seconds: float = 60) -> list[dict[str, Any]]:
        """Polls until the query has a result."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = self.instant(query)
            except (OSError, AssertionError):
                found = []
            if found:
                return found
            time.sleep(0.3)
        raise AssertionError(f"no result within {seconds} s: {query}")


def _fast_rules(folder: Path) -> list[str]:
    """Our rule files with an interval of a second and without hold times."""
    for path in sorted((RULES / "rules").rglob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for group in content["groups"]:
            group["interval"] = "1s"
            for rule in group["rules"]:
                rule.pop("for", None)
                rule.pop("keep_firing_for", None)
        (folder / path.name).write_text(yaml.safe_dump(content))
    return [str(folder / "*.yaml")]


@contextmanager
def running(folder: Path, scrape: list[dict[str, Any]]) -> Iterator[Prometheus]:
    """Starts Prometheus and ends it; skips, or fails where the servers are required, when it is not installed."""
    binary = shutil.which("prometheus")
    if binary is None:
        if os.environ.get("GPUWATCH_REQUIRE_SERVERS") == "1":
            pytest.fail("prometheus is required here and is not installed")
        pytest.skip("prometheus is not installed (Debian: apt install prometheus)")
    rules = folder / "rules"
    rules.mkdir()
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": _fast_rules(rules),
        "scrape_configs": scrape,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(address)
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=15)
