"""Slow, obvious twins of the two policies on one node: the published formulas, one device at a time."""

from __future__ import annotations

import math

from tests.reference.fragmentation import Device, Task, expected_fragment

NO_FIT = None


def best_fit_score(cpu_free: int, devices: list[Device], task: Task) -> tuple[int, int]:
    """(score, device) of a single-device task that fits; device -1 for others."""
    cpu_over = (cpu_free - task.cpu) / 128_000
    gpu_over = (sum(d.left for d in devices) - task.gpus * task.share) / 8_000
    score = math.trunc(100 * (1 - (0.5 * cpu_over + 0.5 * gpu_over)))
    if task.gpus != 1:
        return score, -1
    roomy = [(d.left, at) for at, d in enumerate(devices) if _room(d, task)]
    return score, min(roomy)[1]


def fgd_score(cpu_free: int, devices: list[Device], task: Task, mix: list[tuple[Task, float]]) -> tuple[int, int]:
    """(score, device) of a task that fits; device -1 where several or none are taken."""
    before = expected_fragment(cpu_free, devices, mix)
    if task.gpus == 1:
        options = [(at, _taken(devices, [at], task)) for at, d in enumerate(devices) if _room(d, task)]
    else:
        lowest = [at for at, d in enumerate(devices) if _room(d, task)][: task.gpus]
        options = [(-1, _taken(devices, lowest, task))]
    best = None
    for at, after in options:
        gain = before - expected_fragment(cpu_free - task.cpu, after, mix)
        score = int(100 / (1 + math.exp(-gain / 1000)))
        if best is None or score > best[0]:
            best = (score, at)
    assert best is not None
    return best


def _room(device: Device, task: Task) -> bool:
    return device.left >= task.share and (not task.models or device.model in task.models)


def _taken(devices: list[Device], which: list[int], task: Task) -> list[Device]:
    return [Device(d.model, d.left - task.share) if at in which else d for at, d in enumerate(devices)]
