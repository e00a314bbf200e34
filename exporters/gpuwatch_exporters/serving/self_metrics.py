"""What an exporter tells of itself, and the process it runs in, as text.

Written here instead of with prometheus_client, which would cost 11 MB of memory on each GPU node. Every series of ours
has the label `exporter`: text files of several exporters end up in one page, where equal series would be an error.
"""

from __future__ import annotations

import gc
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gpuwatch import __version__
from gpuwatch_exporters.exposition import exact, family, labels
from gpuwatch_exporters.serving.cycles import Cycles

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
Samples = Iterable[tuple[str, float | None]]  # labels as text, value; None leaves the sample out


class SelfMetrics:
    """Counts what is not the cycles' own, and renders all of it. Counting may come from any thread."""

    def __init__(self, exporter_name: str, cycles: Cycles) -> None:
        self._cycles = cycles
        self._own = labels([("exporter", exporter_name)])
        self._version = labels([("exporter", exporter_name), ("version", __version__)])
        self._lock = threading.Lock()
        self._scrapes: Counter[int] = Counter({200: 0})
        self.textfile_failures = 0
        self.reloads: Counter[str] = Counter()
        self.reload_at: float | None = None
        self.process_began_at = _process_began_at()

    def scraped(self, code: int) -> None:
        """Counts an answer of /metrics."""
        with self._lock:
            self._scrapes[code] += 1

    def reloaded(self, good: bool) -> None:
        """Counts a reading of the web configuration file."""
        with self._lock:
            self.reloads["success" if good else "failure"] += 1
            if good:
                self.reload_at = time.time()

    def text(self, values_bytes: int | None) -> str:
        """The families of the exporter. `values_bytes`: size of the exporter's own text, None when it is withdrawn."""
        tally, own = self._cycles.tally, self._own
        with self._lock:
            scrapes, reloads = dict(self._scrapes), dict(self.reloads)
        parts = [
            _gauge("build_info", "Version of the exporter; always 1.", [(self._version, 1)]),
            _gauge("interval_seconds", "Time between two cycles.", [(own, self._cycles.interval_seconds)]),
            _gauge("collect_duration_seconds", "How long the last cycle took.", [(own, tally.last_took_seconds)]),
            _gauge(
                "last_success_timestamp_seconds", "Unix time at which a cycle last succeeded.",
                [(own, tally.last_success_at)],
            ),
            _gauge(
                "values_served", "1 when this page holds the values of the last cycle, 0 when they are withdrawn "
                "because none succeeded yet, the last one failed or one hangs.", [(own, values_bytes is not None)],
            ),
            _counter("cycles_total", "Cycles that ended.", [(own, tally.cycles)]),
            _counter("cycle_failures_total", "Cycles that failed.", [(own, tally.failures)]),
            _counter(
                "scrapes_total", "Answers of /metrics by HTTP status.",
                [(f'{own},code="{code}"', count) for code, count in sorted(scrapes.items())],
            ),
            _gauge("page_bytes", "Size of the values on this page before packing.", [(own, values_bytes)]),
            _counter("textfile_failures_total", "Text files not written.", [(own, self.textfile_failures)]),
            _counter(
                "web_config_reloads_total", "Readings of the web configuration file by result.",
                [(f'{own},result="{result}"', count) for result, count in sorted(reloads.items())],
            ),
            _gauge(
                "web_config_last_reload_timestamp_seconds",
                "Unix time at which the web configuration in force was read.", [(own, self.reload_at)],
            ),
        ]  # fmt: skip
        return "".join(parts)

    def process_text(self) -> str:
        """The process_ and python_ families under the names that every Prometheus client gives them. Never in a text
        file: whoever serves that has its own."""
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        cpu_seconds = (int(fields[11]) + int(fields[12])) / _TICKS
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        generations = [(f'generation="{number}"', each) for number, each in enumerate(gc.get_stats())]
        parts = [
            _counter("process_cpu_seconds_total", "User and system CPU time of the process.", [("", cpu_seconds)]),
            _gauge("process_resident_memory_bytes", "Resident memory.", [("", int(fields[21]) * _PAGE_BYTES)]),
            _gauge("process_virtual_memory_bytes", "Virtual memory.", [("", int(fields[20]))]),
            _gauge(
                "process_start_time_seconds", "Unix time at which the process began.", [("", self.process_began_at)]
            ),
            _gauge("process_open_fds", "Open file descriptors.", [("", len(os.listdir("/proc/self/fd")) - 1)]),
            _gauge("process_max_fds", "Limit of open file descriptors.", [("", limit if limit >= 0 else None)]),
            _gauge("process_threads", "Threads of the process.", [("", int(fields[17]))]),
            _counter(
                "python_gc_collections_total", "Garbage collections.",
                [(of, each["collections"]) for of, each in generations],
            ),
            _counter(
                "python_gc_objects_collected_total", "Objects found and freed by garbage collection.",
                [(of, each["collected"]) for of, each in generations],
            ),
        ]  # fmt: skip
        return "".join(parts)


def _gauge(name: str, told: str, samples: Samples) -> str:
    return _family(name, "gauge", told, samples)


def _counter(name: str, told: str, samples: Samples) -> str:
    return _family(name, "counter", told, samples)


def _family(name: str, kind: str, told: str, samples: Samples) -> str:
    """A family of which no sample is known is left out whole."""
    if not name.startswith(("process_", "python_")):
        name = f"gpuwatch_exporter_{name}"
    lines = [f"{name}{{{of}}} {exact(v)}\n" if of else f"{name} {exact(v)}\n" for of, v in samples if v is not None]
    return family(name, kind, told) + "".join(lines) if lines else ""


def _process_began_at() -> float:
    """Unix time, from the ticks since boot that the kernel notes for each process."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS
