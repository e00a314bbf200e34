"""One call with its pace, its counters and the records of its last answer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from gpuwatch.clock import Clock
from gpuwatch_exporters.slurm.ask.errors import SILENT, CallError, told_reason
from gpuwatch_exporters.slurm.ask.pace import Pace
from gpuwatch_exporters.slurm.ask.source import Source
from gpuwatch_exporters.slurm.read.document import release, told_errors
from gpuwatch_exporters.slurm.read.unknown import Unknown

log = logging.getLogger(__name__)
T = TypeVar("T")
Reader = Callable[[dict[str, Any], Unknown], T | None]


class Call(Generic[T]):
    """`records` are those of the last answer; None from a failure until the next success."""

    def __init__(self, name: str, read: Reader[T], source: Source, pace: Pace, clock: Clock) -> None:
        self.name = name
        self.pace = pace
        self.unknown = Unknown()
        self.records: list[T] | None = None
        self.calls = 0
        self.failures: Counter[str] = Counter()
        self.took_seconds: float | None = None
        self.success_at: float | None = None  # Unix time
        self.release: tuple[str, str, str] = ("", "", "")  # schema, Slurm's release, cluster
        self.told = ""  # why it failed
        self._silent = False
        self._read, self._source, self._clock = read, source, clock

    def refresh(self, timeout_seconds: float) -> bool:
        """Makes the call if it is due. False: the controller was silent at the last call, and asking for more now would
        only wait."""
        began = self._clock.monotonic()
        if not self.pace.due(began):
            return not self._silent
        self.pace.called(began)
        self.calls += 1
        reason = ""
        try:
            self.records = self._ask(timeout_seconds)
        except CallError as err:
            reason = err.code
            self._failed(err.what + (f" (to do: {err.todo})" if err.todo else ""), err.code)
        self.took_seconds = self._clock.monotonic() - began
        self.pace.ended(not reason)
        if not reason:
            self._succeeded()
        self._silent = reason in SILENT
        return not self._silent

    def drop(self) -> None:
        """Forgets the records: the controller is silent, and what it said before is not repeated."""
        self.records = None
        self.pace.hurry()

    def _ask(self, timeout_seconds: float) -> list[T]:
        answer = self._source.ask(self.name, timeout_seconds)
        self.unknown.begin()
        try:
            out = list(self._records(answer.rows(self.name)))
        except (ValueError, RecursionError) as err:  # the latter for lists in lists without end
            raise CallError(f"{self.name}: the answer is no JSON: {err}", code="not_json") from err
        if errors := told_errors(answer.rest):
            raise CallError(f"{self.name}: {errors[0]}", code=told_reason(errors[0], "told_error"))
        if not answer.found:
            raise CallError(f"{self.name}: the answer holds no list of that name", code="bad_answer")
        self.release = release(answer.rest)
        return out

    def _records(self, rows: Iterator[Any]) -> Iterator[T]:
        """A row that cannot be read is counted and left out: one odd job must not hide all others."""
        for row in rows:
            if not isinstance(row, dict):
                self.unknown.add("row", row)
                continue
            try:
                record = self._read(row, self.unknown)
            except (TypeError, AttributeError, ValueError, OverflowError) as err:
                self.unknown.add("row", f"{self.name}: {err}")
                continue
            if record is not None:
                yield record

    def _failed(self, what: str, reason: str) -> None:
        self.records = None
        self.failures[reason] += 1
        if self.told != what:
            log.warning("%s; the values of %s are left out until it answers", what, self.name)
        self.told = what

    def _succeeded(self) -> None:
        self.success_at = self._clock.now().timestamp()
        if self.told:
            log.info("%s answers again", self.name)
        self.told = ""
