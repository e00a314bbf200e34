"""A seat per device: its thread, its reader, and which of its readings may still be published.

A reading is published at most once, so that nothing stale is ever told. One that ends after its cycle's deadline is
published by the next cycle if that one's own is late too: a slow device is told with values up to one interval old, a
hung one is down.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch_exporters.device.frame import Identity
from gpuwatch_exporters.nvml.boards import Address
from gpuwatch_exporters.nvml.group import Group
from gpuwatch_exporters.nvml.reader import Reader, Reading
from gpuwatch_exporters.nvml.worker import Work, Worker

log = logging.getLogger(__name__)
OPENING_SECONDS = 60.0  # without a persistence daemon the first call to a GPU takes long; after this it counts as hung
CLOSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Result:
    """What a cycle may publish of a device: a reading and how long it took, or why there is none."""

    reading: Reading | None
    seconds: float | None = None
    down: str | None = None


class Seat:
    """One device and its thread. Used by the thread of the cycle."""

    def __init__(self, address: Address, groups: Mapping[str, Group], max_age: float) -> None:
        """max_age: seconds after its beginning up to which a reading may be published."""
        self._max_age = max_age
        self.reader = Reader(address, groups)
        self.identity: Identity | None = None  # as last read
        self.timeouts = 0
        self._told_fault: type[BaseException] | None = None
        self._worker: Worker[Reading | None] = Worker(f"gpu-{address}")
        self._work: Work[Reading | None] | None = None  # begun, and not yet published
        self._late: Work[Reading | None] | None = None

    def start(self, generation: int, driver_version: str) -> None:
        """Begins a reading, unless an earlier one goes on."""
        if self._work is not None and self._work.done():
            self._late, self._work = self._work, None
        work = self._worker.start(lambda: self.reader.read(generation, driver_version))
        self._work = work or self._work

    def result(self, generation: int, until: float) -> Result:
        """The reading to publish, waiting for it at most until this monotonic time."""
        late, self._late = self._late, None
        if self._work is not None and self._work.wait(until):
            work, self._work = self._work, None
            return self._told(work, generation)
        self.timeouts += 1
        if late is not None:
            return self._told(late, generation)
        return Result(None, down=self._waiting())

    def rest(self) -> None:
        """Forgets readings that were not published: in this cycle the device is not asked."""
        self._late = None
        if self._work is not None and self._work.done():
            self._work = None

    def cancel(self) -> None:
        """Makes a reading that goes on stop at its next call."""
        self.reader.cancel()

    def close(self, until: float) -> bool:
        """After `cancel`: frees what the features hold, waiting until this monotonic time; False while a call hangs."""
        if self._work is not None:
            self._work.wait(until)
        self.rest()
        work = self._worker.start(self.reader.close)
        return work is not None and work.wait(max(until, time.monotonic() + CLOSE_SECONDS))

    def stop(self) -> None:
        """Ends the thread, once it has nothing to do."""
        self._worker.stop()

    @property
    def busy(self) -> bool:
        """Whether a call goes on."""
        return self._worker.busy_seconds is not None

    def _told(self, work: Work[Reading | None], generation: int) -> Result:
        if work.error is not None:
            self._fault(work.error)
            return Result(None, down="fault")
        reading = work.value
        if time.monotonic() - work.started > self._max_age:  # it hung on the way
            return Result(None, down=self._waiting())
        if reading is None or reading.generation != generation:  # of a library that has been shut since
            return Result(None, down=self._waiting())
        if reading.identity is not None:
            self.identity = reading.identity
        return Result(reading, work.seconds, reading.down)

    def _fault(self, error: BaseException) -> None:
        """A fault of this program on one device is told once, and leaves the others alone."""
        if type(error) is not self._told_fault:
            self._told_fault = type(error)
            log.error("reading GPU %s failed", self.reader.address, exc_info=error)
        self.reader.faults["reader"] += 1

    def _waiting(self) -> str:
        busy = self._worker.busy_seconds or 0.0
        return "opening" if not self.reader.opened and busy < OPENING_SECONDS else "hung"
