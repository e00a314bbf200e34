"""Orders the stages: snapshot, history and settings in, one Evaluation out. The only place that knows the order.

Pure: "now" is snapshot.taken_at, equal input gives an equal Evaluation. A stage that breaks is reported in
`failures` and leaves the others standing.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from gpuwatch.advice.advise import RULE_FAILED, AdviceContext, advise
from gpuwatch.advice.move_costs import move_costs, with_commands
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.demand.mix import demand_mix
from gpuwatch.demand.pending import pending_demand
from gpuwatch.errors import GpuwatchError
from gpuwatch.fit.booking import Booking, book
from gpuwatch.forecast.forecast import forecast_all
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.evaluation import Evaluation, StageFailure
from gpuwatch.model.history import History
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import PlacementAdvice, PlacementRequest
from gpuwatch.model.plan import PlanLimits, RebalancePlan
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.planner import plan_rebalance
from gpuwatch.placement.what_if.answer import WhatIf

T = TypeVar("T")
U = TypeVar("U")

STAGES = ("booking", "waterfall", "mix", "fragmentation", "demand", "forecast", "advice")


class _Stages:
    """Runs stages one by one, times them, and turns a break into a StageFailure."""

    def __init__(self, observe: Callable[[str, float], None] | None) -> None:
        self._observe = observe
        self.failures: list[StageFailure] = []

    def run(self, stage: str, work: Callable[[], T], instead: U) -> T | U:
        started = time.perf_counter()
        try:
            return work()
        except Exception as err:  # one broken stage must not take the others down
            code = err.code if isinstance(err, GpuwatchError) else type(err).__name__
            self.failures.append(StageFailure(stage=stage, code=code, detail=str(err)))
            return instead
        finally:
            if self._observe is not None:
                self._observe(stage, time.perf_counter() - started)


def evaluate(
    snapshot: ClusterSnapshot,
    history: History,
    settings: AnalysisSettings,
    *,
    observe: Callable[[str, float], None] | None = None,
) -> Evaluation:
    """Evaluates one snapshot.

    `observe(stage, seconds)` is called once per stage (see STAGES), failed ones included. Never raises on data.
    """
    stages = _Stages(observe)
    booking = stages.run("booking", lambda: book(snapshot), Booking(nodes={}))
    overall, scopes = stages.run("waterfall", lambda: waterfalls(booking, snapshot.taken_at, settings), (None, ()))
    mix = stages.run("mix", lambda: demand_mix(snapshot, settings), DemandMix(basis="the mix could not be computed"))
    fragmentation = stages.run("fragmentation", lambda: fragmentation_report(booking, mix), None)
    demand = stages.run("demand", lambda: pending_demand(snapshot, booking), ())
    forecasts = stages.run("forecast", lambda: forecast_all(history, snapshot.taken_at, settings), ())
    context = AdviceContext(snapshot=snapshot, booking=booking, mix=mix, settings=settings)
    recommendations, abstentions = stages.run("advice", lambda: advise(context), ((), ()))
    # A broken rule is worth no less than a broken stage: what it would have found is missing from the answer.
    broken = [each for each in abstentions if each.reason == RULE_FAILED]
    stages.failures += [
        StageFailure(stage="advice", code=RULE_FAILED, detail=f"{each.rule}: {each.detail}") for each in broken
    ]
    return Evaluation(
        id=evaluation_id(snapshot, history, settings),
        cluster=snapshot.cluster,
        snapshot_taken_at=snapshot.taken_at,
        waterfall=overall,
        waterfall_scopes=scopes,
        fragmentation=fragmentation,
        demand=demand,
        forecasts=forecasts,
        recommendations=recommendations,
        abstentions=abstentions,
        sources=snapshot.sources,
        findings=(*snapshot.findings, *booking.findings),
        failures=tuple(stages.failures),
    )


def place(
    snapshot: ClusterSnapshot, request: PlacementRequest, settings: AnalysisSettings, evaluation_id: str
) -> PlacementAdvice:
    """Answers a what-if on the same booking and mix that the evaluation used."""
    return WhatIf(book(snapshot), demand_mix(snapshot, settings)).answer(request, evaluation_id)


class Placements:
    """place() for one who asks often: what no request changes is kept until another snapshot is asked about.

    Safe to call from several threads; the first question about a snapshot prepares it, and the others wait for that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[ClusterSnapshot, AnalysisSettings, WhatIf] | None = None

    def __call__(
        self, snapshot: ClusterSnapshot, request: PlacementRequest, settings: AnalysisSettings, evaluation_id: str
    ) -> PlacementAdvice:
        """The advice that place() would give."""
        return self._on(snapshot, settings).answer(request, evaluation_id)

    def _on(self, snapshot: ClusterSnapshot, settings: AnalysisSettings) -> WhatIf:
        with self._lock:
            kept = self._kept
            # By identity: comparing two snapshots of a large cluster would take longer than the answer.
            if kept is None or kept[0] is not snapshot or kept[1] is not settings:
                kept = (snapshot, settings, WhatIf(book(snapshot), demand_mix(snapshot, settings)))
                self._kept = kept
            return kept[2]


def rebalance(
    snapshot: ClusterSnapshot,
    limits: PlanLimits,
    settings: AnalysisSettings,
    evaluation_id: str,
    *,
    previous: RebalancePlan | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RebalancePlan:
    """A migration plan under `limits`, on the same mix that the evaluation used, each move priced and with its lines.

    previous: a plan to keep while it still stands. progress(moves so far, moves allowed) is called now and then.
    """
    mix = demand_mix(snapshot, settings)
    context = AdviceContext(snapshot=snapshot, booking=book(snapshot), mix=mix, settings=settings)
    plan = plan_rebalance(
        snapshot,
        mix,
        limits,
        costs=move_costs(context),
        previous=previous,
        evaluation_id=evaluation_id,
        progress=progress,
    )
    return with_commands(plan, snapshot)


def evaluation_id(snapshot: ClusterSnapshot, history: History, settings: AnalysisSettings) -> str:
    """12 hex digits that are equal for equal input, on every machine."""
    # repr of frozen dataclasses of numbers, strings, tuples and dicts is stable across processes (no hash order in it).
    text = "\0".join(map(repr, (snapshot, history, settings)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
