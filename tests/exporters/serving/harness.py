"""A service in this process, and one as a child process."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwatch_exporters.serving.service import Service

from tests.exporters.serving.tiny import PAGE, Tiny, parser
from tests.servers import wait_for

SOON = 0.01


@dataclass
class Served:
    """A running service and the file that it serves."""

    service: Service
    exporter: Tiny
    page: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next_cycle(self) -> None:
        """Until a cycle that began after this call has ended."""
        tally = self.service.cycles.tally
        wanted = tally.cycles + 2
        wait_for("a cycle", lambda: tally.cycles >= wanted, every=SOON)


@contextlib.contextmanager
def served(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, first: str | None = PAGE
) -> Iterator[Served]:
    """A service of a Tiny on a free port, once its first cycle has ended."""
    page = folder / "page"
    if first is not None:
        page.write_text(first)
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    options = parser().parse_args(["--page", str(page), "--interval", "0.1", *listen, *arguments])
    exporter = Tiny(page)
    service = Service(exporter, options, environment or {})
    service.start()
    try:
        if not (first or "").startswith("hang"):
            # A good cycle is counted a moment before its page is there.
            wait_for("the first page", lambda: service.cycles.tally.failures or service.pages.ready(), every=SOON)
        port = int(service.address.rpartition(":")[2]) if service.address else 0
        yield Served(service, exporter, page, port)
    finally:
        service.stop(cycle_seconds=0.1)


@dataclass
class Child:
    """A running process, its address and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path
    page: Path

    def said(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        found = re.search(r"exporter on (\S+)", self.said())
        assert found, self.said()
        return f"http://{found[1]}"


@contextlib.contextmanager
def child(folder: Path, *arguments: str, first: str | None = PAGE, **environment: str) -> Iterator[Child]:
    """A Tiny as a process of its own, once it says where it listens."""
    page, log = folder / "page", folder / "log"
    if first is not None:
        page.write_text(first)
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    command = [sys.executable, "-m", "tests.exporters.serving.tiny", "--page", str(page), *listen, *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment})
    try:
        made = Child(process, log, page)
        wait_for("the child", lambda: "exporter on" in made.said() or process.poll() is not None, every=SOON)
        yield made
    finally:
        process.kill()
        process.wait(5)
