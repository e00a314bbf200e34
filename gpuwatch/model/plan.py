"""A rebalance plan: what may be done, the steps in order, what they gain and cost, and the world that they rely on."""

from __future__ import annotations

from typing import Literal

from gpuwatch.model.evaluation import Command
from gpuwatch.model.jobs import Member
from gpuwatch.model.values import value

PLAN_SCHEMA = "gpuwatch.plan/1"

Method = Literal["none", "local_search", "exact", "previous"]


@value
class PlanLimits:
    """What a plan may do. Every bound is a choice of the person who asks."""

    max_moves: int | None = None  # None: max_moves_ratio decides
    max_moves_ratio: float = 0.05  # of the running jobs, rounded down, one at least
    max_gpu_hours: float | None = None  # work lost by all moves together; None: no bound
    max_per_owner: int | None = None  # moves of one owner's members; None: a quarter of them, one at least
    max_per_tenant: int | None = None
    protect: tuple[str, ...] = ()  # patterns (* and ?) of job ids, tenants or owners that are not moved
    tenants: tuple[str, ...] = ()  # only their jobs are moved; empty: everybody's
    pools: tuple[str, ...] = ()  # only there; empty: everywhere
    include_cpu_jobs: bool = False  # jobs without a GPU may be moved, for the CPU that they hold beside idle GPUs
    any_model: bool = False  # a job may go to any card that its shape accepts, also a slower one
    horizon_hours: float = 24.0  # how long a gain is taken to last when it is weighed against the work lost
    least_gain_milligpu: int = 100  # a move that gains less is not worth anybody's trouble


@value
class MoveCost:
    """What ending a job once loses. A CPU-only job loses seconds and no GPU-hours."""

    gpu_hours: float
    work_lost_seconds: int
    basis: str


@value
class PlanStep:
    """One step. What it names is free at that moment, when the steps before it are done.

    started_milligpu, usable_milligpu and stranded_milligpu tell the whole plan up to and with this step: waiting jobs
    started, and the change of free capacity that the mix can and cannot use. Stopping after any step leaves a sound
    cluster with that gain.
    """

    order: int  # from 1
    kind: Literal["move", "start"]
    job: str
    member: str
    tenant: str | None = None
    owner: str | None = None
    shape: str  # label
    milligpu_per_gpu: int
    gpu_model: str | None = None  # of the target's devices; None for a CPU-only job
    source: str | None = None  # node; None for a start
    source_gpus: tuple[int, ...] = ()
    target: str
    target_gpus: tuple[int, ...] = ()
    cost: MoveCost | None = None  # of a move
    started_milligpu: int = 0
    usable_milligpu: float = 0.0
    stranded_milligpu: float = 0.0
    gpu_hours_lost: float = 0.0
    undo: str = ""
    commands: tuple[Command, ...] = ()


@value
class PlanMeasure:
    """The cluster before or after the whole plan, measured by booking it anew."""

    allocated_milligpu: int
    free_milligpu: int
    usable_milligpu: float  # free less stranded
    stranded_milligpu: float
    fragmentation_index: float | None
    pending_jobs: int  # of one member, asking for GPUs and free to start
    pending_milligpu: int


@value
class ShapeGain:
    """How often one shape of the mix fits before and after the plan."""

    shape: str
    fits_before: int
    fits_after: int


@value
class Refused:
    """Jobs that no plan touches, by reason."""

    reason: str
    jobs: int
    example: str


@value
class NodeBefore:
    """A node that the plan touches, as it was. Lists run parallel to its devices, in their order."""

    name: str
    takes_work: bool
    gpu_indexes: tuple[int, ...] = ()
    gpu_models: tuple[str | None, ...] = ()
    free_milligpu: tuple[int, ...] = ()
    cpu_free_millicores: int | None = None
    memory_free_bytes: int | None = None


@value
class JobBefore:
    """A job that the plan touches, as it was: enough to recognize it, and to put it back."""

    job: str
    fingerprint: str  # of shape, members, phase and marks; equal for equal jobs
    phase: Literal["running", "pending"]
    pending_reason: str | None = None
    member: Member
    peers: tuple[str, ...] = ()  # other jobs of its owner on the nodes that the plan touches; of a moved job alone


@value
class RebalancePlan:
    """The answer to "what should move". No steps is an answer too, and `reason` says why there are none."""

    evaluation_id: str
    cluster: str
    limits: PlanLimits
    steps: tuple[PlanStep, ...] = ()
    reason: str | None = None
    moves: int = 0
    starts: int = 0
    allowed_moves: int = 0
    running_jobs: int = 0
    gpu_hours_lost: float = 0.0
    started_milligpu: int = 0
    usable_change_milligpu: float = 0.0
    before: PlanMeasure
    after: PlanMeasure
    shapes: tuple[ShapeGain, ...] = ()  # of the mix, only those whose fits change
    method: Method = "none"
    optimality_gap_ratio: float | None = None  # value missed against the exact optimum, 0..1
    optimality_reason: str | None = None  # why the gap is None
    refused: tuple[Refused, ...] = ()
    nodes_before: tuple[NodeBefore, ...] = ()
    jobs_before: tuple[JobBefore, ...] = ()


@value
class StepVerdict:
    """Whether one step of a plan still stands in another snapshot."""

    order: int
    kind: Literal["move", "start"]
    job: str
    verdict: Literal["ok", "done", "refused"]
    reason: str | None = None  # code, when refused
    detail: str | None = None


@value
class PlanVerdict:
    """Whether a plan still stands: all of its steps do, in order."""

    plan_evaluation_id: str
    evaluation_id: str
    cluster: str
    valid: bool
    steps: tuple[StepVerdict, ...] = ()
    steps_to_do: int = 0
    sound_steps: int = 0  # steps from the first on that stand
    changed_nodes: tuple[str, ...] = ()  # touched nodes that changed without harm to the plan
