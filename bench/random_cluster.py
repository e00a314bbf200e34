"""A large random cluster for the benches: mixed cards, jobs of all sizes, no two nodes alike by design."""

from __future__ import annotations

import random
from dataclasses import replace

from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job, Member, ShapeCount
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import GIB, MILLI
from gpuwatch.traces.trace_format import TRACE_START

CARDS = ("A100-40", "A100-80", "H100-80", "H200-141", "B200", "GB200", "T4", "L40S")
_SHARES = (100, 160, 250, 320, 460, 500, 650, 810)
_WHOLE = (1, 2, 4, 8)


def random_snapshot(nodes: int, *, seed: int = 7, shapes: int = 100, devices: int = 8) -> ClusterSnapshot:
    """`nodes` nodes of `devices` devices, most of them held in part, with a mix of `shapes` shapes as arrivals."""
    rng = random.Random(seed)
    made, jobs = [], []
    for at in range(nodes):
        card = rng.choice(CARDS)
        name = f"node-{at:05d}"
        made.append(
            Node(
                name=name,
                pool=card,
                gpus=tuple(Gpu(index=index, model=card, health="healthy") for index in range(devices)),
                cpu_allocatable_millicores=rng.randint(64, 256) * 1000,
                memory_allocatable_bytes=rng.randint(512, 2048) * GIB,
                nvlink_domain=f"rack-{at // 18}" if card == "GB200" else None,
            )
        )
        jobs += _fill(rng, name, devices)
    empty = ClusterSnapshot(cluster="bench", taken_at=TRACE_START, nodes=tuple(made), jobs=tuple(jobs))
    return replace(empty, arrivals=tuple(ShapeCount(shape=s, count=n) for s, n in _mix(rng, shapes).items()))


def _fill(rng: random.Random, node: str, devices: int) -> list[Job]:
    """Jobs on named devices of one node: whole ones from the left, shares on some of the rest."""
    whole = min(devices, rng.choice((0, 0, 2, 4, 5, 6, 7, 8)))
    held = [(index, MILLI) for index in range(whole)]
    held += [(index, rng.choice(_SHARES)) for index in range(whole, devices) if rng.random() < 0.5]
    return [
        Job(
            id=f"{node}/{index}",
            name=f"{node}-{index}",
            shape=DemandShape(
                gpus=1,
                milligpu_per_gpu=share,
                cpu_millicores=rng.randint(1, 16) * 500,
                memory_bytes=rng.randint(1, 64) * GIB,
            ),
            members=(
                Member(
                    name=f"{node}-{index}",
                    node=node,
                    shares=(DeviceShare(gpu_index=index, milligpu=share),),
                    devices_known=True,
                ),
            ),
        )
        for index, share in held
    ]


def _mix(rng: random.Random, shapes: int) -> dict[DemandShape, int]:
    """Distinct shapes with equal odds of being kept: shares, whole devices, some CPU only, some on named cards."""
    mix: dict[DemandShape, int] = {}
    while len(mix) < shapes:
        gpus = rng.choice((0, 1, 1, 1, *_WHOLE))
        share = rng.choice(_SHARES) if gpus == 1 and rng.random() < 0.5 else MILLI
        named = tuple(sorted(rng.sample(CARDS, rng.choice((1, 2))))) if gpus and rng.random() < 0.4 else ()
        cpu = rng.choice((1000, 2000, 4000, 8000, 12_000, 16_000, 32_000, 64_000))
        shape = DemandShape(gpus=gpus, milligpu_per_gpu=share, cpu_millicores=cpu, gpu_models=named)
        mix[shape] = rng.randint(1, 100)
    return mix
