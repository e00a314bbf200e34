"""Everything that one evaluation says about one snapshot. Renderers print these values and add none."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.snapshot import Finding, Severity, SourceHealth
from gpuwatch.model.values import value

Scalar = str | int | float | bool | None


@value
class Waterfall:
    """installed >= healthy >= schedulable >= allocated >= active within a scope, in thousandths of a device.

    blocked sums to installed - schedulable. allocated = active + idle_held + activity_unknown. free = schedulable -
    allocated. A MIG instance counts compute_slices / 7 of its device, rounded to thousandths per device.
    """

    pool: str | None = None  # None: every pool
    gpu_model: str | None = None  # None: every model
    installed_milligpu: int = 0
    healthy_milligpu: int = 0
    schedulable_milligpu: int = 0
    allocated_milligpu: int = 0
    active_milligpu: int = 0
    idle_held_milligpu: int = 0
    activity_unknown_milligpu: int = 0
    free_milligpu: int = 0
    health_unknown_milligpu: int = 0  # counted as healthy, nobody vouches for it
    blocked: dict[str, int] = field(default_factory=dict)  # cause -> milligpu

    @property
    def is_cell(self) -> bool:
        """One model in one pool: cells do not overlap, so their capacities add up to every wider scope."""
        return self.pool is not None and self.gpu_model is not None


@value
class ShapeFit:
    """One shape of the demand mix against the free capacity."""

    shape: DemandShape
    share_ratio: float  # of all members in the mix; the shares of a report sum to 1
    fits_now: int  # how many members of this shape alone could start now, one after the other
    stranded_milligpu: float  # free capacity that this shape cannot take (unweighted)


@value
class FragmentationScope:
    """The index within one scope. fragmentation_index is None when nothing is free; `reason` then says so."""

    pool: str | None = None
    gpu_model: str | None = None
    free_milligpu: int = 0
    stranded_milligpu: float = 0.0  # free capacity weighted by the share of GPU shapes that cannot take it
    fragmentation_index: float | None = None  # 100 * stranded / free, CPU-only shapes left out
    fgd_ratio: float | None = None  # the published F / idle over all classes, CPU-only included, 0..1
    by_cause: dict[str, float] = field(default_factory=dict)  # no_access, gpu_lacking, cpu_lacking, both_lacking
    cpu_only_milligpu: float = 0.0  # the part of the published F that CPU-only shapes add, apart from the headline
    reason: str | None = None

    @property
    def is_cell(self) -> bool:
        """One model in one pool: cells do not overlap, so their capacities add up to every wider scope."""
        return self.pool is not None and self.gpu_model is not None


@value
class FragmentationReport:
    """Index, causes and shapes for the whole cluster, then the same per pool and per model."""

    overall: FragmentationScope
    scopes: tuple[FragmentationScope, ...] = ()
    shapes: tuple[ShapeFit, ...] = ()
    mix_basis: str = ""
    mix_coverage_ratio: float | None = None  # share of the counted members that the kept shapes cover
    excluded_mig_gpus: int = 0  # devices in MIG mode take no part in a time-share index


@value
class PendingDemand:
    """GPUs that wait, per pool asked for and kind. fits_by_sum_not_by_shape counts those that no node can host."""

    pool: str
    kind: str
    demand_milligpu: int  # running + pending
    pending_milligpu: int
    gated_milligpu: int = 0  # held back by a gate or suspended: no demand yet, told apart
    fits_by_sum_not_by_shape_jobs: tuple[str, ...] = ()


@value
class ForecastStep:
    """Demand at one future step. intervals: "0.8" -> (low, high)."""

    at: datetime
    mean_gpus: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)


@value
class Forecast:
    """Demand of one target, or the reason why there is none."""

    pool: str
    kind: str
    quantity: str  # demand_gpus
    status: Literal["ok", "insufficient_data"]
    model: str | None = None
    model_reason: str | None = None  # why this model leads
    reason: str | None = None  # what is missing when not ok
    skill_vs_seasonal_naive: float | None = None  # 1 - MAE / MAE of the daily repeat, on held-out steps
    coverage_ratio: dict[str, float] = field(default_factory=dict)  # nominal level -> realized on held-out steps
    history_steps: int = 0
    steps: tuple[ForecastStep, ...] = ()


@value
class Confidence:
    """How sure a rule is, 0..1, and what that rests on."""

    value: float
    basis: str


@value
class Subject:
    """What a piece of advice is about."""

    kind: str  # job | node | pool
    name: str
    node: str | None = None
    pool: str | None = None
    gpu_model: str | None = None
    tenant: str | None = None
    gpus: tuple[int, ...] = ()


@value
class Recoverable:
    """What following the advice would give back. A None travels with its reason in `missing`."""

    gpus: float
    gpu_hours_per_week: float
    cost: float | None = None  # per week, in settings.currency
    currency: str | None = None
    kwh: float | None = None  # per week
    exchanged: bool = False  # as many devices of another card are taken for them: the cluster has no more free GPUs
    missing: dict[str, str] = field(default_factory=dict)


@value
class Risk:
    """What following the advice may cost."""

    disruption: str
    work_lost_seconds: int | None = None
    checkpoint_age_seconds: int | None = None
    basis: str | None = None


@value
class Command:
    """One line for a person to run, with the line that takes it back. gpuwatch runs none of them."""

    run: str
    undo: str
    note: str = ""


@value
class Evidence:
    """One measured number behind the advice, with the query that gives it again."""

    query: str
    value: float | None
    unit: str
    window_seconds: int | None = None
    reason: str | None = None  # why value is None


@value
class Recommendation:
    """One piece of advice with its price and proof."""

    id: str  # stable: hash of rule and subject
    rule: str
    severity: Severity
    confidence: Confidence
    subject: Subject
    summary: str
    recoverable: Recoverable
    risk: Risk
    facts: dict[str, Scalar] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unlocks: tuple[str, ...] = ()  # pending jobs that it would let start
    first_seen_at: datetime | None = None
    valid_until: datetime | None = None


@value
class Abstention:
    """A subject that a rule looked at and would not judge, with the reason."""

    rule: str
    subject: str
    reason: str  # stable code: warm_up, insufficient_samples, no_telemetry, terminating, protected ...
    detail: str = ""


@value
class StageFailure:
    """A stage that broke. Its results are absent, the others stand."""

    stage: str
    code: str
    detail: str


@value
class Evaluation:
    """All results for one snapshot. Equal snapshot, history and settings give an equal Evaluation."""

    id: str
    cluster: str
    snapshot_taken_at: datetime
    waterfall: Waterfall | None = None
    waterfall_scopes: tuple[Waterfall, ...] = ()
    fragmentation: FragmentationReport | None = None
    demand: tuple[PendingDemand, ...] = ()
    forecasts: tuple[Forecast, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    abstentions: tuple[Abstention, ...] = ()
    sources: tuple[SourceHealth, ...] = ()
    findings: tuple[Finding, ...] = ()
    failures: tuple[StageFailure, ...] = ()
