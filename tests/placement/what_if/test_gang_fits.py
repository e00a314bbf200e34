"""Whether a gang fits, against trying every node and every set of devices for every member."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpuwatch.fit.booking import book
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import GIB
from gpuwatch.placement.what_if.answer import WhatIf
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.reference.gang_search import a_gang_fits

CARDS = ("H100-80", "H200-141", "B200", "T4", "Mystery 9")


def a_small_world(rng: random.Random) -> ClusterSnapshot:
    nodes, jobs = [], []
    for at in range(rng.randint(1, 4)):
        usual = rng.choice(CARDS)
        gpus = [
            a_gpu(
                index,
                rng.choice((usual, usual, rng.choice(CARDS))),
                health=rng.choice(("healthy",) * 6 + ("unhealthy",)),
            )
            for index in range(rng.randint(1, 4))
        ]
        if rng.random() < 0.2:
            slices = tuple(
                MigInstance(id=str(i), profile="1g.10gb", compute_slices=1, memory_slices=1) for i in range(3)
            )
            gpus[0] = replace(gpus[0], mig_enabled=True, mig_instances=slices)
        node = a_node(
            f"n{at}",
            gpus,
            cpu_allocatable_millicores=rng.choice((8000, 20_000, 64_000)),
            memory_allocatable_bytes=rng.choice((8 * GIB, 64 * GIB, None)),
            nvlink_domain=rng.choice((None, "rack")),
        )
        nodes.append(node)
        for gpu in node.gpus:
            if not gpu.mig_enabled and rng.random() < 0.4:
                share = rng.choice((300, 500, 1000))
                jobs.append(a_job(f"j{at}-{gpu.index}", node.name, [gpu.index], shape=a_shape(1, share, cpu=1000)))
    return a_snapshot(*nodes, jobs=jobs)


def a_small_request(rng: random.Random) -> PlacementRequest:
    gpus = rng.choice((1, 1, 2, 3))
    profile = "1g.10gb" if rng.random() < 0.15 else None
    shape = a_shape(
        gpus,
        rng.choice((250, 400, 500, 1000)) if gpus == 1 and not profile else 1000,
        cpu=rng.choice((0, 2000, 7000)),
        memory_bytes=rng.choice((0, 3 * GIB)),
        gpu_models=tuple(sorted(rng.sample(CARDS, rng.choice((0, 0, 2))))),
        mig_profile=profile,
    )
    return PlacementRequest(
        shape=shape,
        members=rng.choice((1, 2, 3)),
        same_nvlink_domain=rng.random() < 0.5 and not profile,
        gpu_memory_bytes=rng.choice((10, 70, 120)) * GIB if rng.random() < 0.4 and not profile else None,
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_gang_fits_exactly_where_some_way_exists(seed):
    rng = random.Random(seed)
    booking = book(a_small_world(rng))
    what_if = WhatIf(booking, DemandMix())
    for _ in range(10):
        request = a_small_request(rng)
        advice = what_if.answer(request, "e1")
        assert advice.feasible == a_gang_fits(booking, request), request
        assert bool(advice.choices) == advice.feasible
