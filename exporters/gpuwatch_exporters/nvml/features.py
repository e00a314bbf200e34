"""Runs one group on one board: its cadence, its faults, and whether the feature is on or why it is off."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.calls import DeviceLostError, DriverGoneError
from gpuwatch_exporters.nvml.group import Board, Group, Instance

log = logging.getLogger(__name__)
SLOW_SECONDS = 60.0
_told: set[tuple[str, str]] = set()  # faults already logged with their traceback, for all devices together


@dataclass(slots=True)
class Told:
    """What a group gave: values of the board, and of each instance in their order, or of none."""

    board: list[Value] = field(default_factory=list)
    instances: list[list[Value]] = field(default_factory=list)

    def empty(self) -> bool:
        """Whether there is no value at all."""
        return not self.board and not any(self.instances)


@dataclass(slots=True)
class Feature:
    """A group at work on one board, between two changes of its handles. `off` is "" while it gives values."""

    id: str
    group: Group
    faults: Counter[str]  # of this program, by feature
    off: str = "not_read"
    _last: Told | None = None
    _due: float = 0.0
    _known: str = ""  # why the library refused it, asked once

    def read(self, board: Board, instances: list[Instance]) -> Told:
        """Its values: read now, or earlier where its cadence says so."""
        if self._last is not None and time.monotonic() < self._due:
            return self._last
        # Most groups have nothing to say of instances, of which there may be a hundred.
        own = type(self.group).read_instance is not Group.read_instance
        instances = instances if own else []
        calls = [board.calls, *(each.calls for each in instances)]
        board.why = ""
        for each in calls:
            each.refused = ""
        before = [(len(each.unsupported), each.troubles) for each in calls]
        faults = self.faults.get(self.id, 0)
        told = Told(self._run(self.group.read, board))
        told.instances = [self._run(self.group.read_instance, board, each) for each in instances]
        troubled = faulty = self.faults.get(self.id, 0) > faults
        for each, (refused, troubles) in zip(calls, before, strict=True):
            troubled |= each.troubles > troubles
            if len(each.unsupported) > refused:
                self._known = list(each.unsupported.values())[refused]
            self._known = self._known or each.refused
        self._file(told, troubled, faulty, board.why)
        return told

    def close(self, board: Board, instances: list[Instance]) -> None:
        """Frees what the group holds."""
        for instance in instances:
            self._guard(partial(self.group.close_instance, instance))
        self._guard(partial(self.group.close, board))

    def _file(self, told: Told, troubled: bool, faulty: bool, why: str) -> None:
        if not told.empty():
            self.off = ""
        else:
            self.off = "fault" if faulty else why or self._known or ("failed" if troubled else "no_value")
        if self.group.cadence == "cycle":
            return
        # What never changes is asked again only if something went wrong.
        forever = self.group.cadence == "static" and not troubled
        self._last, self._due = told, float("inf") if forever else time.monotonic() + SLOW_SECONDS

    def _run(self, read: Callable[..., Iterable[Value]], *of: Board | Instance) -> list[Value]:
        """What was read before a fault is kept: it is true."""
        out: list[Value] = []
        self._guard(lambda: out.extend(read(*of)))
        return out

    def _guard(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (DeviceLostError, DriverGoneError):
            raise
        except Exception as err:
            self.faults[self.id] += 1
            kind = (self.id, type(err).__name__)
            if kind not in _told:
                _told.add(kind)
                log.exception("the feature %s broke off; the others go on", self.id)
