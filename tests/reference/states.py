"""Random node states and mixes for the twins: small, seeded, and full of edges (equal shares, exact fits, no CPU)."""

from __future__ import annotations

import random

from gpuwatch.model.jobs import DemandShape
from tests.reference.fragmentation import Device, Task

MODELS = ("A100-80", "H100-80", "T4")
SHARES = (1, 160, 250, 460, 500, 810, 999, 1000)
CPUS = (0, 1000, 3152, 8000, 12_000, 64_000)


def some_task(rng: random.Random) -> Task:
    gpus = rng.choice((0, 1, 1, 1, 1, 2, 4, 8))
    share = rng.choice(SHARES) if gpus == 1 else 1000
    models = tuple(sorted(rng.sample(MODELS, rng.choice((0, 0, 1, 2)))))
    return Task(gpus=gpus, share=share, cpu=rng.choice(CPUS), models=models)


def some_mix(rng: random.Random) -> list[tuple[Task, float]]:
    """Shares as the kernel keeps them: multiples of 2**-30, so that both add up exactly."""
    weights = [rng.random() for _ in range(rng.randint(1, 8))]
    return [(some_task(rng), round(weight / sum(weights) * 2**30) / 2**30) for weight in weights]


def some_node(rng: random.Random) -> tuple[int, list[Device]]:
    """(CPU free, devices): mostly one model to a node, sometimes several, sometimes one that nobody names."""
    model = rng.choice((*MODELS, None))
    mixed = rng.random() < 0.2
    lefts = (0, 1000, *SHARES, rng.randint(0, 1000))
    devices = [Device(rng.choice(MODELS) if mixed else model, rng.choice(lefts)) for _ in range(rng.randint(1, 8))]
    return rng.choice((*CPUS, 11_999, 96_000)), devices


def shape_of(task: Task) -> DemandShape:
    return DemandShape(gpus=task.gpus, milligpu_per_gpu=task.share, cpu_millicores=task.cpu, gpu_models=task.models)
