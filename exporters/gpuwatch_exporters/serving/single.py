"""One cycle and out: for cron, and for a look at what would be served."""

from __future__ import annotations

import argparse
import logging
import sys
import threading

from gpuwatch_exporters.serving.cycles import Cycles, Outcome
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.leaving import leave
from gpuwatch_exporters.serving.page import Pages
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from gpuwatch_exporters.serving.textfile import TextFile

log = logging.getLogger(__name__)
_CLOSE_SECONDS = 2.0


def run_once(exporter: Exporter, options: argparse.Namespace) -> int:
    """Prints or writes the page of one cycle: 0 when it went well, 1 when it failed or hung (then the page holds what
    the exporter tells of itself and no values)."""
    cycles = Cycles(exporter, options.interval, lambda _: None)
    metrics = SelfMetrics(exporter.name, cycles)
    pages = Pages(metrics, cycles)
    textfile = TextFile(options.textfile, pages, metrics, exporter.name) if options.textfile else None
    outcome = _within(cycles, cycles.stale_seconds)
    if outcome is not None:
        pages.put(outcome)
    else:
        log.error("the cycle did not end within %.0f s", cycles.stale_seconds)
    good = outcome is not None and outcome.text is not None
    if textfile:
        good = textfile.write() and good
    else:
        sys.stdout.write(pages.file_text())
        sys.stdout.flush()
    closing = threading.Thread(target=exporter.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    if outcome is None or closing.is_alive():
        leave(0 if good else 1)
    return 0 if good else 1


def _within(cycles: Cycles, seconds: float) -> Outcome | None:
    """The outcome of one cycle, None when it takes longer: cron would start the next one beside it."""
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(cycles.once()), name="cycle", daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None
