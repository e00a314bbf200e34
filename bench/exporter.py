"""Times a scrape of the NVML exporter against nvitop-exporter: the same fake library, the same run, side by side.

    python -m bench.exporter [--gpus 8] [--scrapes 1000] [--delay-ms 500]

Needs gcc and `pip install nvitop-exporter`. Both are child processes on loopback, scraped in turn. A scrape is one
connection: request, whole answer, close, through a bare socket, so that the client's own work hardly counts. As
Prometheus does, the request takes gzip; times without are told too. The CPU of a scrape is what the process used while
it was scraped without pause, less what it used idle for the same time, divided by the scrapes; the CPU of 15 s is all
of it with one scrape, background work included. Families are those with at least one sample, every detail read; the
product (--model) decides what there is, and the default has most, links to its CPU included. Then every call of the
library takes --delay-ms and the scrapes run again: an exporter that asks the library while it is scraped shows it here.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.metadata
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.fake_nvml.harness import FakeNvml
from tests.servers import EXPORTER, free_port, get, running

TIMES_FASTER, TIMES_LESS_CPU, TIMES_MEMORY, TIMES_FAMILIES, P99_BAR_MS = 10.0, 8.0, 1.2, 3.0, 5.0
IDLE_SECONDS = 15.0
# A node at work: the last board is cut, and one had an XID.
STATE = ("mig {last} 1 22016", "mig {last} 2 45056", "mig {last} 4 90112", "xid 1 31 1")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Side:
    """One exporter under test and what was measured of it; times in milliseconds, memory in bytes."""

    name: str
    port: int
    pid: int
    times: list[float]
    plain_times: list[float]
    cpu_ms: float = 0.0
    minute_ms: float = 0.0
    resident: int = 0
    families: int = 0
    samples: int = 0
    page_bytes: int = 0

    def high(self) -> float:
        return statistics.quantiles(self.times, n=100)[98]


def main() -> int:
    options = _options()
    print(
        f"{options.gpus} x {options.model} on the stand-in (one cut by MIG), {options.scrapes} scrapes each, "
        f"nvitop-exporter {importlib.metadata.version('nvitop-exporter')}, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fake = FakeNvml(folder / "fake", gpus=options.gpus, model=options.model)
        fake.write(*(line.format(last=options.gpus - 1) for line in STATE))
        with _exporter(folder, fake) as ours, _nvitop(folder, fake) as peer:
            sides = (ours, peer)
            for side in sides:
                _idle(side)
            _scrape_in_turn(sides, options.scrapes)
            for side in sides:
                _cpu(side, options.scrapes)
                _size(side)
        slow = FakeNvml(folder / "slow", gpus=options.gpus, model=options.model)
        with _exporter(folder, slow) as delayed:
            slow.write(delay_us=options.delay_ms * 1000)
            delayed.times.clear()
            end = time.monotonic() + 12  # a whole cycle and more
            while time.monotonic() < end:
                delayed.times.append(_scrape(delayed.port)[0])
                time.sleep(0.01)
    return _report(ours, peer, delayed, options.delay_ms)


def _report(ours: Side, peer: Side, delayed: Side, delay_ms: int) -> int:
    print(f"{'':28s}{'gpuwatch':>12s}{'nvitop':>12s}{'ratio':>9s}   bar")
    median = statistics.median
    checks = [
        ("scrape p50, ms", median(ours.times), median(peer.times), TIMES_FASTER, "x faster"),
        ("CPU of a scrape, ms", ours.cpu_ms, peer.cpu_ms, TIMES_LESS_CPU, "x less"),
        ("resident, MB", ours.resident / 1e6, peer.resident / 1e6, 1 / TIMES_MEMORY, "x less"),
        ("families", peer.families, ours.families, TIMES_FAMILIES, "x more"),
    ]
    good = True
    for name, low, high, bar, word in checks:
        ratio = high / low if low else float("inf")
        good &= ratio >= bar
        left, right = (high, low) if name == "families" else (low, high)
        print(f"{name:28s}{left:12.2f}{right:12.2f}{ratio:9.2f}   {bar:.2f} {word}: {_verdict(ratio >= bar)}")
    for name, left, right in (
        ("scrape p99, ms", ours.high(), peer.high()),
        ("p50 without gzip, ms", median(ours.plain_times), median(peer.plain_times)),
        ("CPU of 15 s, one scrape, ms", ours.minute_ms, peer.minute_ms),
        ("samples", ours.samples, peer.samples),
        ("page, KB", ours.page_bytes / 1e3, peer.page_bytes / 1e3),
    ):
        print(f"{name:28s}{left:12.2f}{right:12.2f}{right / left:9.2f}")
    high = delayed.high()
    good &= high < P99_BAR_MS
    print(
        f"every call takes {delay_ms} ms: scrape p99 {high:.2f} ms of {len(delayed.times)}   "
        f"bar {P99_BAR_MS:.0f} ms: {_verdict(high < P99_BAR_MS)}"
    )
    return 0 if good else 1


def _verdict(good: bool) -> str:
    return "met" if good else "missed"


def _scrape(port: int, packed: bool = True) -> tuple[float, bytes]:
    """(milliseconds, body as text)."""
    accept = b"Accept-Encoding: gzip\r\n" if packed else b""
    started = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: bench\r\n" + accept + b"Connection: close\r\n\r\n")
        parts = []
        while part := sock.recv(1 << 16):
            parts.append(part)
    answer = b"".join(parts)
    spent = 1000 * (time.perf_counter() - started)
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise RuntimeError(f"port {port} answered {head!r}")
    return spent, gzip.decompress(body) if b"content-encoding: gzip" in head.lower() else body


def _scrape_in_turn(sides: tuple[Side, ...], scrapes: int) -> None:
    for _ in range(20):
        for side in sides:
            _scrape(side.port)
    for _ in range(scrapes):
        for side in sides:
            side.times.append(_scrape(side.port)[0])
            side.plain_times.append(_scrape(side.port, packed=False)[0])
            time.sleep(0.002)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _idle(side: Side) -> None:
    before = _cpu_seconds(side.pid)
    time.sleep(IDLE_SECONDS)
    side.minute_ms = 1000 * (_cpu_seconds(side.pid) - before)


def _cpu(side: Side, scrapes: int) -> None:
    before, started = _cpu_seconds(side.pid), time.monotonic()
    for _ in range(scrapes):
        _scrape(side.port)
    used, spent = 1000 * (_cpu_seconds(side.pid) - before), time.monotonic() - started
    side.cpu_ms = (used - side.minute_ms * spent / IDLE_SECONDS) / scrapes
    side.minute_ms += side.cpu_ms


def _size(side: Side) -> None:
    text = _scrape(side.port)[1].decode()
    found = [each for each in text_string_to_metric_families(text) if each.samples]
    side.resident = _resident(side.pid)
    side.families, side.samples = len(found), sum(len(each.samples) for each in found)
    side.page_bytes = len(text)


@contextlib.contextmanager
def _exporter(folder: Path, fake: FakeNvml) -> Iterator[Side]:
    port = free_port()
    command = [
        *EXPORTER,
        "nvml",
        "--enable",
        "all",
        "--listen",
        f"127.0.0.1:{port}",
        "--state-file",
        str(folder / "devices.json"),
    ]
    with running(
        _with_env(fake, command), folder / "ours.log", lambda: get(f"http://127.0.0.1:{port}/-/ready")[0] == 200
    ) as process:
        yield Side("gpuwatch", port, process.pid, [], [])


@contextlib.contextmanager
def _nvitop(folder: Path, fake: FakeNvml) -> Iterator[Side]:
    port = free_port()
    command = [sys.executable, "-m", "nvitop_exporter", "--port", str(port)]
    with running(
        _with_env(fake, command), folder / "nvitop.log", lambda: b"gpu_utilization" in _scrape(port)[1]
    ) as process:
        yield Side("nvitop", port, process.pid, [], [])


def _with_env(fake: FakeNvml, command: list[str]) -> list[str]:
    return ["/usr/bin/env", *(f"{name}={text}" for name, text in fake.env().items()), *command]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--model", default="NVIDIA GB200", help="decides what there is to read (default: %(default)s)")
    parser.add_argument("--scrapes", type=int, default=1000)
    parser.add_argument("--delay-ms", type=int, default=500)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
