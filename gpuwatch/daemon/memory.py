"""The loop's dealings with the store: it may fail at any time, and then the loop goes on without it and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Protocol, TypeVar

from gpuwatch.errors import GpuwatchError
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import History
from gpuwatch.model.snapshot import Finding
from gpuwatch.store import Store, StoreGoneError

T = TypeVar("T")
log = logging.getLogger("gpuwatch.daemon")


class HistorySource(Protocol):
    """A source that can tell the demand of the past."""

    def demand_history(self, now: datetime, hours: int) -> History: ...


class Memory:
    """What is remembered between evaluations: in the store while it works, else only in this process."""

    def __init__(self, open_: Callable[[], Store] | None, *, history_hours: int) -> None:
        self._open = open_
        self._store: Store | None = None
        self._hours = history_hours
        self._backfilled = False
        self._lost = False  # a store that is opened next knows nothing of what this process remembers
        self._first_seen: dict[str, datetime] = {}
        self._last_history = History()
        self.finding: Finding | None = None  # what is wrong with the store now

    @property
    def ok(self) -> bool | None:
        """Whether the store worked at the last try; None: there is none."""
        return None if self._open is None else self.finding is None

    def history(self, now: datetime, source: object) -> History:
        """The demand before `now`, filled in from `source` once when it can tell it."""
        self.finding = None
        if self._open is None:
            return self._without_store(now, source)
        if self._lost and self._try(lambda store: store.backfill(self._last_history)) is not None:
            self._lost = False
        if not self._backfilled and hasattr(source, "demand_history"):
            told = self._ask(source, now)
            if told is not None and self._try(lambda store: store.backfill(told)) is not None:
                self._backfilled = True
        found = self._try(lambda store: store.history(now, self._hours))
        if found is not None:
            self._last_history = found
        return self._last_history

    def dated(self, evaluation: Evaluation, now: datetime) -> Evaluation:
        """The same evaluation with `first_seen_at` on every recommendation."""
        ids = [each.id for each in evaluation.recommendations]
        seen = self._try(lambda store: store.seen(ids, now, self._first_seen)) if self._open else None
        if seen is None:
            seen = {i: self._first_seen.get(i, now) for i in ids}
        self._first_seen = seen
        dated = tuple(replace(each, first_seen_at=seen[each.id]) for each in evaluation.recommendations)
        return replace(evaluation, recommendations=dated)

    def record(self, evaluation: Evaluation, demand: dict[tuple[str, str], float] | None, at: datetime) -> None:
        """Keeps the evaluation; without a demand (it could not be computed) nothing is kept: a gap is not a zero."""
        if self._open is not None and demand is not None:
            self._try(lambda store: store.record(evaluation, demand, at))

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _without_store(self, now: datetime, source: object) -> History:
        if not self._backfilled and hasattr(source, "demand_history"):
            told = self._ask(source, now)
            self._backfilled = told is not None
            self._last_history = told or self._last_history
        return self._last_history

    def _ask(self, source: HistorySource, now: datetime) -> History | None:
        try:
            return source.demand_history(now, self._hours)
        except Exception as err:  # the past is a luxury: the evaluation goes on with what the store remembers
            log.warning("the source cannot tell its past demand: %s", err)
            return None

    def _try(self, work: Callable[[Store], T]) -> T | None:
        if self.finding is not None:
            return None  # it failed earlier in this round; asking again would only wait again
        try:
            if self._store is None:
                assert self._open is not None
                self._store = self._open()
            return work(self._store)
        except Exception as err:  # whatever a database driver raises, the evaluation stands
            code = err.code if isinstance(err, GpuwatchError) else "store_error"
            self.finding = Finding(code=code, severity="warning", subject="store", detail=str(err))
            log.warning("going on without the store: %s", err)
            if isinstance(err, StoreGoneError):
                self.close()
                self._lost = True
            return None
