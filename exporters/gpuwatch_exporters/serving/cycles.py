"""The background cycle: one thread collects at a steady pace and leaves its page for whoever asks."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gpuwatch.errors import GpuwatchError
from gpuwatch_exporters.serving.exporter import Exporter

log = logging.getLogger(__name__)
STALE_INTERVALS, STALE_SECONDS = 3, 30.0


class Outcome(NamedTuple):
    """What one cycle left. `text` is None when it failed, then `told` says why; times in seconds."""

    text: str | None
    told: str
    took_seconds: float
    ended_monotonic: float


@dataclass
class Tally:
    """What the cycles add up to. Written by the thread of the cycles alone; a reader may be one cycle late."""

    cycles: int = 0
    failures: int = 0
    last_took_seconds: float | None = None
    last_success_at: float | None = None  # Unix time


class Cycles:
    """Runs `exporter.cycle` every `interval_seconds` on one daemon thread and hands each Outcome to `finished`."""

    def __init__(self, exporter: Exporter, interval_seconds: float, finished: Callable[[Outcome], None]) -> None:
        self.interval_seconds = interval_seconds
        self.stale_seconds = max(STALE_INTERVALS * interval_seconds, STALE_SECONDS)
        self.tally = Tally()
        self._exporter = exporter
        self._finished = finished
        self._told: set[str] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._alive_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="cycles", daemon=True)

    def start(self) -> None:
        """Begins at once."""
        self._alive_at = time.monotonic()
        self._thread.start()

    def soon(self) -> None:
        """Asks for a cycle now instead of at its time: something that the page tells was just changed."""
        self._wake.set()

    def stop(self, seconds: float) -> bool:
        """Asks the thread to end and waits at most so long; False when it is still inside a cycle."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def stuck(self) -> bool:
        """Whether no cycle ended for longer than the stale limit: one hangs."""
        return time.monotonic() - self._alive_at > self.stale_seconds

    def once(self) -> Outcome:
        """One cycle, on the thread of the caller."""
        began = time.monotonic()
        text, told = None, ""
        try:
            text = self._exporter.cycle()
        except Exception as err:  # whatever it is, the next cycle may be well again
            told = self._tell(err)
        ended = time.monotonic()
        self._count(text is not None, ended - began)
        return Outcome(text, told, ended - began, ended)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping:
            outcome = self.once()
            self._alive_at = outcome.ended_monotonic
            try:
                self._finished(outcome)
            except Exception:
                log.exception("the page of this cycle could not be put out")
            due = next_due(due, time.monotonic(), self.interval_seconds)
            self._wake.wait(due - time.monotonic())
            self._wake.clear()

    def _count(self, good: bool, took_seconds: float) -> None:
        self.tally.cycles += 1
        self.tally.failures += not good
        self.tally.last_took_seconds = took_seconds
        if not good:
            return
        self.tally.last_success_at = time.time()
        if self._told:
            log.info("cycles work again")
            self._told.clear()

    def _tell(self, err: Exception) -> str:
        """Logs each kind of failure once until a cycle works again."""
        known = isinstance(err, GpuwatchError)
        told = err.what if isinstance(err, GpuwatchError) else f"{type(err).__name__}: {err}"
        kind = f"{type(err).__name__} {err.code if isinstance(err, GpuwatchError) else ''}"
        if kind not in self._told:
            self._told.add(kind)
            log.error("cycle failed: %s; such failures are only counted from here on", told, exc_info=not known)
        return told


def next_due(due: float, now: float, interval: float) -> float:
    """The first time after `now` on the grid through `due`: no drift, and no cycles to catch up with."""
    return due + interval * max(1, math.floor((now - due) / interval) + 1)
