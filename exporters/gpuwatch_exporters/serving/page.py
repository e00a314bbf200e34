"""The page that is served: the values of the last good cycle and what the exporter tells of itself, as ready bytes."""

from __future__ import annotations

import threading
import time
import zlib
from dataclasses import dataclass

from gpuwatch_exporters.serving.cycles import Cycles, Outcome
from gpuwatch_exporters.serving.self_metrics import SelfMetrics

_BARE_SECONDS = 1.0  # a page without values is made anew at most so often
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 4  # a page of 100 KB in 1 ms; level 9 takes five times that for 15 % less


@dataclass(slots=True, eq=False)
class Page:
    """One text in both codings. The packed one is made when first asked for, or ahead while somebody asks for it."""

    plain: bytes
    values_bytes: int | None  # how many of its first bytes are the exporter's own text; None without values
    made_monotonic: float
    _packed: bytes | None = None

    def packed(self) -> bytes:
        """gzip of the text."""
        if self._packed is None:
            self._packed = pack(self.plain)
        return self._packed


class Pages:
    """Makes a page of each cycle, and gives the one that holds now. `current` may come from any thread."""

    def __init__(self, metrics: SelfMetrics, cycles: Cycles) -> None:
        self._metrics = metrics
        self._cycles = cycles
        self._lock = threading.Lock()
        self._good: Page | None = None
        self._bare: Page | None = None
        self._pack_ahead = 0  # cycles for which packing ahead goes on

    def put(self, outcome: Outcome) -> None:
        """Makes the page of a cycle that ended. That of a failed one takes the values away."""
        page = None
        if outcome.text is not None:
            end = "" if not outcome.text or outcome.text.endswith("\n") else "\n"
            values = (outcome.text + end).encode("utf-8", "replace")  # half a surrogate, as JSON may hold, is a "?"
            own = self._metrics.text(len(values)) + self._metrics.process_text()
            page = Page(values + own.encode(), len(values), outcome.ended_monotonic)
            if self._pack_ahead > 0:
                self._pack_ahead -= 1
                page.packed()
        with self._lock:
            self._good, self._bare = page, None

    def current(self, packed: bool = False) -> Page:
        """The page of the last cycle, or one without values while there is none that holds."""
        if packed:
            self._pack_ahead = 10
        good = self._holding()
        if good is not None:
            return good
        with self._lock:
            bare = self._bare
            if bare is None or time.monotonic() - bare.made_monotonic > _BARE_SECONDS:
                text = self._metrics.text(None) + self._metrics.process_text()
                bare = self._bare = Page(text.encode(), None, time.monotonic())
            return bare

    def ready(self) -> bool:
        """Whether values are served now."""
        return self._holding() is not None

    def _holding(self) -> Page | None:
        good = self._good
        if good is None or time.monotonic() - good.made_monotonic > self._cycles.stale_seconds:
            return None
        return good

    def file_text(self) -> str:
        """The page for a text file: without the families that whoever serves the file has of its own."""
        good = self._holding()
        if good is None or good.values_bytes is None:
            return self._metrics.text(None)
        return good.plain[: good.values_bytes].decode() + self._metrics.text(good.values_bytes)


def pack(plain: bytes) -> bytes:
    """gzip without a name or time, so that equal texts give equal bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(plain) + packer.flush()
