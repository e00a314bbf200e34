"""Random snapshots for properties of fit and placement: small, seeded, with blocked, sick, MIG and mixed nodes."""

from __future__ import annotations

import random

from gpuwatch.model.cluster import Gpu, MigInstance, Node
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import GIB
from tests.builders import a_job, a_node, a_shape, a_snapshot

MODELS = ("A100-80", "H100-80", "T4")


def some_gpu(rng: random.Random, index: int, model: str) -> Gpu:
    if rng.random() < 0.1:
        slices = tuple(
            MigInstance(id=str(i), profile="1g.10gb", compute_slices=1, memory_slices=1)
            for i in range(rng.randint(0, 4))
        )
        return Gpu(index=index, model=model, health="healthy", mig_enabled=True, mig_instances=slices)
    health = rng.choice(("healthy",) * 8 + ("unhealthy", "unknown"))
    return Gpu(index=index, model=rng.choice((model,) * 9 + (None,)), health=health)


def some_node(rng: random.Random, name: str) -> Node:
    model = rng.choice(MODELS)
    count = rng.choice((0, 1, 2, 4, 8))
    return a_node(
        name,
        [some_gpu(rng, index, rng.choice((model,) * 5 + MODELS)) for index in range(count)],
        cpu_allocatable_millicores=rng.choice((None, 2000, 32_000, 96_000, 96_000)),
        memory_allocatable_bytes=rng.choice((None, 16 * GIB, 512 * GIB, 512 * GIB)),
        block_causes=rng.choice(((),) * 6 + (("cordoned",),)),
        nvlink_domain=rng.choice((None, None, "d1", "d2")),
    )


def some_shape(rng: random.Random) -> DemandShape:
    gpus = rng.choice((0, 1, 1, 1, 2, 4))
    profile = "1g.10gb" if gpus and rng.random() < 0.1 else None
    return a_shape(
        gpus,
        milligpu=rng.choice((100, 250, 460, 500, 1000, 1000)) if gpus == 1 and not profile else 1000,
        cpu=rng.choice((0, 1000, 4000, 31_000)),
        memory_bytes=rng.choice((0, GIB, 15 * GIB)),
        gpu_models=tuple(sorted(rng.sample(MODELS, rng.choice((0, 0, 1, 2))))),
        mig_profile=profile,
    )


def some_cluster(seed: int, jobs: int = 12) -> ClusterSnapshot:
    """Nodes, and jobs bound to some of them without named devices (so that booking has to guess)."""
    rng = random.Random(seed)
    nodes = [some_node(rng, f"n{i}") for i in range(rng.randint(1, 6))]
    placed = []
    for i in range(jobs):
        shape = some_shape(rng)
        if shape.mig_profile:
            shape = a_shape(1, milligpu=1000, mig_profile=shape.mig_profile)
        placed.append(a_job(f"j{i}", rng.choice(nodes).name if rng.random() < 0.6 else None, shape=shape))
    return a_snapshot(*nodes, jobs=placed)
