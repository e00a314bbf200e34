"""The process around a service: logging, signals, exit code."""

from __future__ import annotations

import argparse
import logging
import sys

from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.leaving import leave
from gpuwatch_exporters.serving.service import Service
from gpuwatch_exporters.serving.signals import SignalBox
from gpuwatch_exporters.serving.single import run_once

log = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.0005


def run(exporter: Exporter, options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT and gives the exit code: 0, or 1 when the one cycle of --once failed. SIGUSR1
    releases, SIGUSR2 resumes, SIGHUP reads the web configuration anew. A GpuwatchError
    tells what of the options cannot be."""
    configure_logging(options.log_level)
    # A thread that computes keeps the others waiting for so long each time they come back from a system call.
    sys.setswitchinterval(_SWITCH_SECONDS)
    if options.once:
        return run_once(exporter, options)
    signals = SignalBox()
    try:
        service = Service(exporter, options)
    except BaseException:
        exporter.close()  # it may hold devices already
        raise
    service.start()
    while (name := signals.wait(service.wait_seconds())) not in ("SIGTERM", "SIGINT"):
        if name == "SIGHUP":
            service.reload()
        elif name is not None:
            service.act("release" if name == "SIGUSR1" else "resume")
        service.tick()
    log.info("%s: stopping", name)
    signals.exit_at_the_next_one()
    if not service.stop():
        log.warning("something hangs; ending without it")
        leave(0)
    return 0


def configure_logging(level: str) -> None:
    """Lines on stderr without a time: whoever collects them adds it."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format="%(levelname)s %(message)s", force=True)
