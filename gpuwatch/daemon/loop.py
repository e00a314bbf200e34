"""The loop: source -> history -> evaluate -> publish -> store, again and again. Nothing in the data can end it."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from gpuwatch.clock import Clock, SystemClock
from gpuwatch.daemon.memory import Memory
from gpuwatch.daemon.state import DaemonState
from gpuwatch.demand.series import demand_now
from gpuwatch.engine import evaluate
from gpuwatch.model.history import HISTORY_HOURS
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot, Finding, SourceHealth
from gpuwatch.sources.base import Source
from gpuwatch.sources.first import read_first
from gpuwatch.store import Store

log = logging.getLogger("gpuwatch.daemon")


class Daemon:
    """Evaluates one cluster at an interval.

    Sources are tried in order at every round and the first whole answer is used: a second one is a stand-in, not an
    addition. `cluster` renames what the sources call theirs. `open_store` is called when the store is first needed,
    and again after a failure to open it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        settings: AnalysisSettings,
        *,
        cluster: str | None = None,
        interval_seconds: float = 60.0,
        open_store: Callable[[], Store] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._clock = clock or SystemClock()
        self._interval_seconds = interval_seconds
        self._memory = Memory(open_store, history_hours=HISTORY_HOURS)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures: Counter[str] = Counter()
        self._cluster = cluster
        self._observed: dict[str, datetime] = {}  # when each source was last right about the world
        self.state = DaemonState(settings, self._clock, interval_seconds)

    def start(self) -> None:
        """Runs the loop in a thread; the first round begins at once."""
        # A daemon thread: a source that hangs in the network must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name="gpuwatch-loop", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Ends the loop after the round it is in, waiting no longer than the timeout."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        if self._thread is None or not self._thread.is_alive():
            self._memory.close()

    def round(self) -> bool:
        """One round; True when a new evaluation was published. Never raises."""
        try:
            return self._round()
        except Exception as err:
            log.exception("a round broke; the last evaluation stays")
            self._failures["round"] += 1
            finding = Finding(code=type(err).__name__, severity="critical", subject="daemon", detail=str(err))
            self.state.publish(findings=(finding,), stage_failures=dict(self._failures))
            return False

    def _run(self) -> None:
        while not self._stop.is_set():
            started = self._clock.monotonic()
            self.round()
            self._stop.wait(max(0.0, self._interval_seconds - (self._clock.monotonic() - started)))

    def _round(self) -> bool:
        now = self._clock.now()
        seconds: dict[str, float] = {}
        started = time.perf_counter()
        answer = read_first(self._sources, now)
        snapshot = answer.snapshot
        seconds["read"] = time.perf_counter() - started
        self.state.publish(sources=self._aged(answer.health), source_ok=snapshot is not None, last_try_at=now)
        if snapshot is None:
            self._failures["read"] += 1
            self.state.publish(stage_failures=dict(self._failures))
            return False
        if self._cluster is not None:
            snapshot = replace(snapshot, cluster=self._cluster)
        started = time.perf_counter()
        history = self._memory.history(snapshot.taken_at, answer.source)
        seconds["history"] = time.perf_counter() - started
        evaluation = evaluate(snapshot, history, self.state.settings, observe=seconds.__setitem__)
        self._failures.update(each.stage for each in evaluation.failures)
        evaluation = self._memory.dated(evaluation, now)
        self.state.publish(
            evaluation=evaluation,
            snapshot=snapshot,
            history=history,
            stage_seconds=seconds,
            stage_failures=dict(self._failures),
            evaluations=self.state.view.evaluations + 1,
        )
        self._record(snapshot)
        return True

    def _aged(self, health: tuple[SourceHealth, ...]) -> tuple[SourceHealth, ...]:
        """Gives a failed source the time at which it was last right about the world, so that its age keeps growing."""
        self._observed.update({each.name: each.observed_at for each in health if each.ok and each.observed_at})
        return tuple(replace(each, observed_at=each.observed_at or self._observed.get(each.name)) for each in health)

    def _record(self, snapshot: ClusterSnapshot) -> None:
        """Keeps what was published; whatever breaks here, readers already have the evaluation."""
        started = time.perf_counter()
        evaluation = self.state.view.evaluation
        assert evaluation is not None
        try:
            demand: dict[tuple[str, str], float] | None = demand_now(snapshot)
        except Exception as err:
            log.warning("the demand of this round is not kept: %s", err)
            self._failures["record"] += 1
            demand = None
        self._memory.record(evaluation, demand, snapshot.taken_at)
        finding = self._memory.finding
        if finding is not None:
            self._failures["store"] += 1
        self.state.publish(
            store_ok=self._memory.ok,
            findings=(finding,) if finding else (),
            stage_seconds=self.state.view.stage_seconds | {"record": time.perf_counter() - started},
            stage_failures=dict(self._failures),
        )
