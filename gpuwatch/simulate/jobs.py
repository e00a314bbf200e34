"""The jobs: those planted as cases, the background mixes, and what waits in the queue."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.model.jobs import JobKind

TENANTS = ("vision", "language", "speech", "recsys", "biology", "platform")


@dataclass(frozen=True, slots=True)
class PlantedJob:
    """One job put on a node on purpose. `behaviors` is per device, the last one repeated."""

    name: str
    tenant: str
    kind: JobKind
    gpus: int
    behaviors: tuple[str, ...]
    owner_kind: str
    age_minutes: float
    case: str | None = None  # what it shows; None: it is only company
    cpus_per_gpu: float = 12
    memory_gib_per_gpu: float = 96
    preemptible: bool | None = None
    protected: bool = False
    checkpoint_minutes: float | None = None  # age of the last checkpoint
    terminating: bool = False
    gang: bool = False  # every node that plants it holds one member of the same job
    samples_ratio: float = 1.0  # seen of the samples expected in the window


HOUR, DAY = 60.0, 1440.0

PLANTED = {
    "pretrain_gang": PlantedJob(
        "llm-pretrain", "language", "training", 8, ("steady_training",), "PyTorchJob", 6 * DAY,
        cpus_per_gpu=22, memory_gib_per_gpu=220, checkpoint_minutes=25, gang=True, preemptible=False,
    ),
    "finetune_gang": PlantedJob(
        "vlm-finetune", "vision", "training", 8, ("steady_training",), "PyTorchJob", 31 * HOUR,
        cpus_per_gpu=20, memory_gib_per_gpu=200, checkpoint_minutes=55, gang=True, preemptible=True,
    ),
    "idle_training": PlantedJob(
        "rlhf-hung", "language", "training", 4, ("idle",), "Job", 29 * HOUR, case="idle_held",
    ),
    "idle_whole_node": PlantedJob(
        "eval-forgotten", "vision", "training", 8, ("idle",), "Job", 3.2 * DAY, case="idle_held", cpus_per_gpu=16,
    ),
    "idle_notebook": PlantedJob(
        "notebook-left-open", "biology", "interactive", 2, ("idle",), "StatefulSet", 52 * HOUR, case="idle_held",
        cpus_per_gpu=6, memory_gib_per_gpu=48,
    ),
    "protected_idle": PlantedJob(
        "demo-booth", "platform", "inference", 1, ("idle",), "Deployment", 4 * DAY, case="protected_idle",
        protected=True, cpus_per_gpu=8,
    ),
    "loaded_idle": PlantedJob(
        "chat-model-canary", "platform", "inference", 2, ("loaded_idle",), "Deployment", 5 * DAY, case="loaded_idle",
        memory_gib_per_gpu=60,
    ),
    "partly_idle": PlantedJob(
        "train-half-wired", "speech", "training", 4, ("steady_training", "steady_training", "idle"), "Job", 20 * HOUR,
        case="partly_idle",
    ),
    "warm_up": PlantedJob("just-started", "speech", "training", 4, ("idle",), "Job", 11, case="warm_up"),
    "few_samples": PlantedJob(
        "scrape-gaps", "recsys", "training", 2, ("idle",), "Job", 15 * HOUR, case="few_samples", samples_ratio=0.4,
    ),
    "light_b200": PlantedJob(
        "embedder-small", "recsys", "inference", 1, ("light",), "Deployment", 9 * DAY, case="mis_tiered",
        cpus_per_gpu=8, memory_gib_per_gpu=32,
    ),
    "light_h200": PlantedJob(
        "reranker-small", "recsys", "inference", 2, ("light",), "Deployment", 12 * DAY, case="mis_tiered",
        cpus_per_gpu=8, memory_gib_per_gpu=32,
    ),
    "cpu_hog": PlantedJob(
        "preprocess-heavy", "recsys", "batch", 5, ("batch",), "Job", 7 * HOUR, case="cpu_hog", cpus_per_gpu=36.8,
        checkpoint_minutes=12, preemptible=True,
    ),
    "movable": PlantedJob(
        "sweep-trial", "biology", "batch", 1, ("batch",), "Job", 4 * HOUR, case="movable", cpus_per_gpu=8,
        memory_gib_per_gpu=32, checkpoint_minutes=6, preemptible=True,
    ),
    "terminating": PlantedJob(
        "being-deleted", "vision", "training", 2, ("idle",), "Job", 26 * HOUR, case="terminating", terminating=True,
    ),
    "on_dead_node": PlantedJob("stuck-on-dead-node", "speech", "training", 2, ("idle",), "Job", 17 * HOUR),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mix:
    """Background work of one flavor: GPUs per job, thousandths per device, kinds, CPU and memory per GPU."""

    gpus: tuple[tuple[int, float], ...]
    milligpu: tuple[tuple[int, float], ...]
    kinds: tuple[tuple[JobKind, float], ...]
    cpus_per_gpu: tuple[int, ...]
    memory_gib_per_gpu: tuple[int, ...]


_WHOLE = ((1000, 1.0),)
MIXES = {
    "train": Mix(
        gpus=((1, 0.3), (2, 0.25), (4, 0.25), (8, 0.2)), milligpu=_WHOLE,
        kinds=(("training", 0.75), ("batch", 0.17), ("interactive", 0.08)),
        cpus_per_gpu=(10, 12, 16, 20), memory_gib_per_gpu=(64, 96, 128, 192),
    ),
    "research": Mix(
        gpus=((1, 0.62), (2, 0.2), (4, 0.18)), milligpu=_WHOLE,
        kinds=(("interactive", 0.34), ("batch", 0.36), ("training", 0.3)),
        cpus_per_gpu=(4, 6, 8, 10), memory_gib_per_gpu=(24, 32, 64, 96),
    ),
    "serve": Mix(
        gpus=((1, 0.8), (2, 0.2)), milligpu=_WHOLE, kinds=(("inference", 0.92), ("batch", 0.08)),
        cpus_per_gpu=(4, 6, 8), memory_gib_per_gpu=(16, 24, 32),
    ),
    "shares": Mix(
        gpus=((1, 1.0),), milligpu=((250, 0.3), (460, 0.25), (500, 0.3), (750, 0.15)),
        kinds=(("inference", 0.8), ("interactive", 0.2)), cpus_per_gpu=(2, 3, 4), memory_gib_per_gpu=(8, 12, 16),
    ),
    "replicas": Mix(
        gpus=((1, 1.0),), milligpu=((250, 1.0),), kinds=(("inference", 0.6), ("interactive", 0.4)),
        cpus_per_gpu=(1, 2), memory_gib_per_gpu=(4, 6, 8),
    ),
}  # fmt: skip

# How many GPU pods there are of each kind among the slices.
SLICE_KINDS: tuple[tuple[JobKind, float], ...] = (("interactive", 0.6), ("inference", 0.4))


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """One job in the queue. `case` says what it shows."""

    name: str
    tenant: str
    kind: JobKind
    gpus: int
    cpus: float
    memory_gib: float
    age_minutes: float
    reason: str
    pool: str | None = None
    models: tuple[str, ...] = ()
    members: int = 1
    mig_profile: str | None = None
    phase: str = "pending"
    case: str = "pending"
    priority: int | None = None


WAITING = (
    WaitingJob("asr-whole-node", "speech", "training", 8, 120, 800, 340, "Unschedulable", "train-h100",
               ("H100-80",), case="pending_by_shape", priority=1000),
    WaitingJob("diffusion-4", "vision", "training", 4, 64, 480, 95, "Unschedulable", "train-h100", ("H100-80",),
               case="pending_by_shape"),
    WaitingJob("protein-fold-8", "biology", "training", 8, 80, 512, 510, "Unschedulable", "research-a100",
               ("A100-80",), case="pending_by_shape"),
    WaitingJob("tokenize-2", "language", "batch", 2, 48, 192, 45, "Unschedulable", "train-h200", ("H200-141",)),
    WaitingJob("pretrain-next", "language", "training", 8, 176, 1600, 1310, "Unschedulable", "train-b200", ("B200",),
               members=2, priority=2000),
    WaitingJob("any-card-1", "biology", "interactive", 1, 150, 900, 18, "Unschedulable",
               case="pending_cpu_lacking"),
    WaitingJob("slice-3g", "vision", "interactive", 1, 4, 24, 33, "Unschedulable", "slices-a100",
               mig_profile="3g.40gb"),
    WaitingJob("quota-held-8", "recsys", "training", 8, 96, 640, 2900, "SchedulingGated", "train-h100", ("H100-80",),
               phase="gated", case="gated"),
)  # fmt: skip
