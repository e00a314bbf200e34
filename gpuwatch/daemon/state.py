"""What the loop publishes and every reader reads: one immutable View, swapped as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gpuwatch.clock import Clock
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot, Finding, SourceHealth


@dataclass(frozen=True, slots=True)
class View:
    """All that is known at one moment. `evaluation` and `snapshot` belong together, or are both None."""

    evaluation: Evaluation | None = None
    snapshot: ClusterSnapshot | None = None
    history: History = field(default_factory=History)
    sources: tuple[SourceHealth, ...] = ()  # how each door answered last, whether or not the evaluation used it
    source_ok: bool = False  # one door gave a whole snapshot at the last try
    store_ok: bool | None = None  # None: no store
    findings: tuple[Finding, ...] = ()  # about the daemon's own work
    stage_seconds: dict[str, float] = field(default_factory=dict)  # stage -> last duration
    stage_failures: dict[str, int] = field(default_factory=dict)  # stage -> count since start
    evaluations: int = 0  # since start
    last_try_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether answers can be trusted now, and every reason why not."""

    ready: bool
    reasons: tuple[str, ...]
    snapshot_age_seconds: float | None


class DaemonState:
    """Holds the current View. One writer (the loop), any number of readers, no lock: a swap is atomic."""

    def __init__(self, settings: AnalysisSettings, clock: Clock, interval_seconds: float = 60.0) -> None:
        self.settings = settings
        self.interval_seconds = interval_seconds
        self._clock = clock
        self._view = View()

    @property
    def view(self) -> View:
        """The current View; take it once per answer, so that one answer speaks of one evaluation."""
        return self._view

    def publish(self, **changes: Any) -> None:
        """Swaps in a View with `changes`; only the loop calls this."""
        self._view = replace(self._view, **changes)

    def now(self) -> datetime:
        """The present on the daemon's clock."""
        return self._clock.now()

    def age_seconds(self, view: View) -> float | None:
        """Age of the snapshot behind `view`; None without one. Never negative: a clock ahead of ours counts as now."""
        if view.snapshot is None:
            return None
        return max(0.0, (self.now() - view.snapshot.taken_at).total_seconds())

    def is_stale(self, view: View) -> bool:
        """Older than the limit: what it says may no longer be so."""
        age = self.age_seconds(view)
        return age is not None and age > self.settings.max_source_age_seconds

    def readiness(self) -> Readiness:
        """True only when an evaluation exists, is young enough, and a source answered at the last try."""
        view = self.view
        age = self.age_seconds(view)
        reasons = []
        if view.evaluation is None:
            reasons.append("no evaluation yet")
        elif self.is_stale(view):
            limit = self.settings.max_source_age_seconds
            reasons.append(f"the snapshot is {age:.0f} s old, the limit is {limit} s")
        if not view.source_ok and view.last_try_at is not None:
            told = "; ".join(f"{s.name}: {s.cause or 'failed'}" for s in view.sources if not s.ok)
            reasons.append(f"no source answered at the last try ({told or 'no source is configured'})")
        return Readiness(ready=not reasons, reasons=tuple(reasons), snapshot_age_seconds=age)
