"""The machines and the plan of the fleet: which node stands in which pool, and what is planted on it on purpose."""

from __future__ import annotations

from dataclasses import dataclass, field

GPU_FAULTS = ("lost", "xid_48", "row_remap_failed")  # make a device unhealthy
GPU_TROUBLES = ("hot", "xid_31")  # worth a look, the device stays healthy

# MIG layouts: (profile family, first memory slice) of each instance; families as in the catalogue's geometry.
MIG_LAYOUTS: dict[str, tuple[tuple[str, int], ...]] = {
    "balanced": (("1g", 0), ("1g", 1), ("2g", 2), ("3g", 4)),
    "all_1g": tuple(("1g", start) for start in range(7)),
    "halves": (("4g", 0), ("3g", 4)),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of server."""

    model: str  # catalogue id
    product: str  # what its driver prints
    gpus: int
    cpus: int
    memory_gib: int


MACHINES = {
    "b200": Machine("B200", "NVIDIA B200", 8, 192, 1920),
    "h200": Machine("H200-141", "NVIDIA H200", 8, 192, 1920),
    "h100": Machine("H100-80", "NVIDIA H100 80GB HBM3", 8, 192, 1920),
    "a100-80": Machine("A100-80", "NVIDIA A100-SXM4-80GB", 8, 128, 960),
    "a100-40": Machine("A100-40", "NVIDIA A100-SXM4-40GB", 8, 96, 960),
    "l40s": Machine("L40S", "NVIDIA L40S", 4, 64, 480),
    "t4": Machine("T4", "Tesla T4", 4, 48, 180),
}


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node. `jobs` are ids of jobs.PLANTED; background work fills what remains but `leave` devices."""

    machine: str
    pool: str
    jobs: tuple[str, ...] = ()
    fill: str | None = None  # id in jobs.MIXES; None: only the planted jobs run here
    leave: int = 0
    troubles: tuple[tuple[int, str], ...] = ()  # (device, one of GPU_FAULTS or GPU_TROUBLES)
    block: tuple[str, ...] = ()
    exporter_down: bool = False
    mig: dict[int, str] = field(default_factory=dict)  # device -> id in MIG_LAYOUTS
    replicas: int = 1  # time-slicing shares per device
    shows: str = ""  # what this node shows, by name; see docs/simulate.md


TRAIN_B, TRAIN_H200, TRAIN_H100 = "train-b200", "train-h200", "train-h100"
RESEARCH, SLICES, SERVE, EDGE = "research-a100", "slices-a100", "serve-l40s", "serve-t4"

PLAN: tuple[NodePlan, ...] = (
    NodePlan("b200", TRAIN_B, jobs=("pretrain_gang",)),
    NodePlan("b200", TRAIN_B, jobs=("pretrain_gang",)),
    NodePlan("b200", TRAIN_B, jobs=("light_b200", "light_b200", "idle_training"), leave=2),
    NodePlan("b200", TRAIN_B, fill="train", leave=1),
    NodePlan("h200", TRAIN_H200, fill="train"),
    NodePlan("h200", TRAIN_H200, jobs=("light_h200",), fill="train", leave=1),
    NodePlan("h200", TRAIN_H200, jobs=("cpu_hog",), leave=3, shows="cpu_starved"),
    NodePlan("h200", TRAIN_H200, fill="train", leave=1, troubles=((5, "lost"),)),
    NodePlan("h200", TRAIN_H200, jobs=("idle_whole_node",)),
    NodePlan("h100", TRAIN_H100, jobs=("finetune_gang",)),
    NodePlan("h100", TRAIN_H100, jobs=("finetune_gang",)),
    NodePlan("h100", TRAIN_H100, jobs=("warm_up",), fill="train", leave=1, shows="fragmented"),
    NodePlan("h100", TRAIN_H100, jobs=("few_samples",), fill="train", leave=2, shows="fragmented"),
    NodePlan("h100", TRAIN_H100, jobs=("idle_notebook",), fill="train", leave=1, shows="fragmented"),
    NodePlan("h100", TRAIN_H100, jobs=("partly_idle",), fill="train", leave=2, shows="fragmented"),
    NodePlan("h100", TRAIN_H100, fill="train", leave=2, troubles=((1, "xid_31"),), shows="fragmented"),
    NodePlan("h100", TRAIN_H100, fill="train", leave=1, shows="fragmented"),
    NodePlan("h100", TRAIN_H100, jobs=("terminating",), fill="train", leave=4, block=("cordoned",)),
    NodePlan("h100", TRAIN_H100, jobs=("on_dead_node",), leave=6, block=("not_ready",), exporter_down=True),
    NodePlan("a100-80", RESEARCH, jobs=("movable",), shows="consolidatable"),
    NodePlan("a100-80", RESEARCH, fill="research", leave=2, troubles=((7, "xid_48"),)),
    NodePlan("a100-80", RESEARCH, fill="research", leave=2, exporter_down=True),
    NodePlan("a100-80", RESEARCH, fill="research", leave=1, troubles=((2, "hot"), (3, "hot"))),
    NodePlan("a100-80", RESEARCH, fill="research", leave=1, troubles=((7, "row_remap_failed"),)),
    NodePlan("a100-80", RESEARCH, jobs=("protected_idle",), fill="research", leave=3),
    NodePlan("a100-80", RESEARCH, fill="research"),
    NodePlan("a100-40", RESEARCH, jobs=("idle_notebook",), fill="research", leave=2),
    NodePlan("a100-40", RESEARCH, fill="research", leave=4),
    NodePlan("a100-80", SLICES, mig=dict.fromkeys(range(4), "balanced"), fill="research", leave=1),
    NodePlan("a100-40", SLICES, mig={**dict.fromkeys(range(4), "all_1g"), **dict.fromkeys(range(4, 8), "halves")}),
    NodePlan("l40s", SERVE, jobs=("loaded_idle",), fill="serve"),
    NodePlan("l40s", SERVE, fill="serve", leave=1),
    NodePlan("l40s", SERVE, fill="serve"),
    NodePlan("l40s", SERVE, fill="shares", leave=1),
    NodePlan("l40s", SERVE, fill="shares"),
    NodePlan("t4", EDGE, fill="serve", leave=1),
    NodePlan("t4", EDGE, fill="serve", troubles=((0, "hot"),)),
    NodePlan("t4", EDGE, fill="replicas", replicas=4, shows="time_sliced"),
    NodePlan("t4", EDGE, fill="replicas", replicas=4, leave=1, shows="time_sliced"),
)
