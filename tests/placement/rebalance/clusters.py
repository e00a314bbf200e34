"""Crowded clusters, where free GPUs are stranded and jobs wait: what a rebalance plan is for."""

from __future__ import annotations

import random
from dataclasses import replace

from gpuwatch.demand.mix import demand_mix
from gpuwatch.model.jobs import Job
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.arrivals import place_stream
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster

SHAPES = (
    *((1, 1000, 11_000), (1, 1000, 3000), (1, 810, 3000), (1, 470, 11_000), (1, 470, 6000), (1, 320, 4000)),
    *((1, 190, 2000), (2, 1000, 8000), (4, 1000, 30_000), (0, 1000, 16_000), (0, 1000, 6000)),
)
LARGER = ((1, 1000, 3000), (1, 1000, 9000), (2, 1000, 8000), (2, 1000, 20_000), (4, 1000, 30_000))


def crowded(seed: int, nodes: int = 6, jobs: int = 45) -> ClusterSnapshot:
    """Nodes of two models, filled by best_fit; then a third of the jobs has left holes, and larger ones wait."""
    rng = random.Random(seed)
    sizes = [rng.choice((2, 4, 4)) for _ in range(nodes)]
    models = [("H100-80", "H100-80", "T4")[at % 3] for at in range(nodes)]
    empty = a_snapshot(*(a_node(f"n{at}", sizes[at], model=models[at]) for at in range(nodes)))
    full = place_stream(empty, [_job(rng, f"j{at}", rng.choice(SHAPES)) for at in range(jobs)], "best_fit", seed=seed)
    stay = [job for job in full.jobs if job.phase == "running" and rng.random() < 0.65]
    wait = [_job(rng, f"w{at}", rng.choice(LARGER)) for at in range(rng.choice((0, 3, 8)))]
    return place_stream(replace(full, jobs=tuple(stay)), wait, "best_fit")


def _job(rng: random.Random, name: str, asked: tuple[int, int, int]) -> Job:
    gpus, milligpu, cpu = asked
    return a_job(
        name,
        shape=a_shape(gpus, milligpu, cpu, memory_bytes=rng.choice((0, 2**30, 2**35))),
        tenant=rng.choice(("red", "blue")),
        owner=rng.choice((None, None, "Deployment/web", "Job/sweep")),
        protected=rng.random() < 0.05,
        preemptible=rng.choice((None, True, False)) if rng.random() < 0.15 else None,
    )


def mixed(seed: int) -> ClusterSnapshot:
    """A random cluster with blocked, sick, MIG and mixed nodes, filled so that every device is named."""
    rng = random.Random(seed)
    stream = [job for job in some_cluster(seed + 1000, jobs=50).jobs if job.phase == "pending"]
    full = place_stream(replace(some_cluster(seed), jobs=()), stream, "best_fit", seed=seed)
    stay = tuple(job for job in full.jobs if job.phase == "running" and rng.random() < 0.5)
    wait = [_job(rng, f"w{at}", rng.choice(LARGER)) for at in range(4)]
    return place_stream(replace(full, jobs=stay), wait, "best_fit")


def mix_of(snapshot: ClusterSnapshot) -> DemandMix:
    return demand_mix(snapshot, AnalysisSettings())
