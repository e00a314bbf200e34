"""The library as a whole: opened once, kept, opened anew with patience after the driver went away.

Every call into the library is made on a thread of its own with a deadline: even opening and closing can hang.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pynvml as nv

from gpuwatch_exporters.nvml.calls import error_name
from gpuwatch_exporters.nvml.library import load_changed
from gpuwatch_exporters.nvml.worker import Work, Worker

log = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
OPENING_SECONDS = 60.0  # without a persistence daemon opening eight GPUs takes long; after this it counts as hung


@dataclass(frozen=True, slots=True)
class Facts:
    """What an open library tells of itself; "" is unknown, and a count of None too."""

    driver_version: str = ""
    library_version: str = ""
    cuda_version: str = ""
    count: int | None = None


class Session:
    """State is told by `facts` (None: not available, see `reason`) and `generation`, which counts openings: a handle
    of an earlier generation is worthless. Used by one thread."""

    def __init__(self, longest_wait: float = LONGEST_WAIT_SECONDS) -> None:
        self.facts: Facts | None = None
        self.reason = "not_opened"
        self.generation = 0
        self._longest_wait = min(longest_wait, LONGEST_WAIT_SECONDS)
        self._wait = FIRST_WAIT_SECONDS
        self._not_before = 0.0
        self._worker: Worker[Facts | None] = Worker("nvml")
        self._opening: Work[Facts | None] | None = None

    def ensure(self, until: float) -> bool:
        """Whether the library is open; if not, and enough time has passed since the last try, tries to open it.

        Waits at most until this monotonic time; an opening that takes longer goes on and is seen by a later call.
        """
        if self.facts is not None:
            return True
        if self._opening is None:
            if time.monotonic() < self._not_before:
                return False
            self._opening = self._worker.start(_open)
            if self._opening is None:  # an earlier close still hangs
                self.reason = "hung"
                return False
        if not self._opening.wait(until):
            self.reason = "opening" if time.monotonic() - self._opening.started < OPENING_SECONDS else "hung"
            return False
        work, self._opening = self._opening, None
        if work.value is None:
            self.wait_longer(_reason(work.error))
            return False
        self.facts, self.reason, self._wait = work.value, "", FIRST_WAIT_SECONDS
        self.generation += 1
        log.info("NVML is open: driver %s, %s GPUs", self.facts.driver_version or "?", self.facts.count)
        return True

    def close(self, reason: str, seconds: float) -> bool:
        """Shuts the library, which closes the device files; whether that ended within this time."""
        was_open, self.facts, self.reason = self.facts is not None, None, reason
        if self._opening is not None:
            if not self._opening.wait(time.monotonic() + seconds):
                return False  # it will be seen by the next ensure(), which a release must make: see settle()
            was_open, self._opening = self._opening.value is not None, None
        if not was_open:
            return self._worker.busy_seconds is None
        work = self._worker.start(_close)
        return work is not None and work.wait(time.monotonic() + seconds)

    def stop(self) -> None:
        """Ends the thread as soon as it has nothing to do."""
        self._worker.stop()

    def wait_longer(self, reason: str) -> None:
        """The driver is not there, or went away: the next opening has to wait, twice as long as the last time."""
        if reason != self.reason or self._wait == FIRST_WAIT_SECONDS:
            log.warning("NVML is not available: %s", reason)
        self.reason = reason
        self._not_before = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, max(self._longest_wait, FIRST_WAIT_SECONDS))


def _open() -> Facts:
    try:
        _init()
    except nv.NVMLError as err:
        if err.value != nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH or not load_changed():
            raise
        _init()
    cuda = _told(nv.nvmlSystemGetCudaDriverVersion)
    return Facts(
        driver_version=_told(nv.nvmlSystemGetDriverVersion) or "",
        library_version=_told(nv.nvmlSystemGetNVMLVersion) or "",
        cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
        count=_told(nv.nvmlDeviceGetCount),
    )


def _init() -> None:
    try:
        # Not attached: a GPU's device file is opened when its handle is asked for, so that sleeping ones sleep on.
        nv.nvmlInitWithFlags(nv.NVML_INIT_FLAG_NO_ATTACH)
    except nv.NVMLError as err:
        if err.value not in (nv.NVML_ERROR_INVALID_ARGUMENT, nv.NVML_ERROR_NOT_SUPPORTED):
            raise
        nv.nvmlInitWithFlags(0)


def _told(function: Callable[[], T]) -> T | None:
    try:
        return function()
    except (nv.NVMLError, nv.NVMLLibraryMismatchError):
        return None


def _close() -> None:
    nv.nvmlShutdown()


def _reason(error: BaseException | None) -> str:
    if isinstance(error, nv.NVMLError):
        return error_name(error.value)
    log.error("opening NVML failed unexpectedly", exc_info=error)
    return "fault"
