"""Slow, obvious twins of the policies on one node: the published formulas, one device at a time."""

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


def dot_product_score(cpu_free: int, devices: list[Device], task: Task) -> tuple[int, int]:
    cpu = cpu_free / 128_000 * (task.cpu / 128_000)
    gpu = sum(d.left for d in devices) / 8_000 * (task.gpus * task.share / 8_000)
    return int(100 * (1 - (cpu + gpu) / 2)), _fullest(devices, task)


def clustering_score(devices: list[Device], task: Task, running: dict[str, int]) -> tuple[int, int]:
    """running: size ("share", "1", "2" ...) -> members on the node."""
    if task.gpus == 0:
        return 0, -1
    sizes = {size for size, count in running.items() if count}
    size = "share" if task.gpus == 1 and task.share < 1000 else str(task.gpus)
    base = {(True, 1): 75, (False, 0): 25}.get((size in sizes, len(sizes)), 50 if size in sizes else 0)
    taken = max(0, 8_000 - sum(d.left for d in devices))
    return base + 25 * taken // 8_000, _fullest(devices, task)


def packing_score(devices: list[Device], task: Task) -> tuple[int, int]:
    if task.gpus == 0:
        return 0, -1
    free = [d for d in devices if d.left == 1000]
    if len(free) == len(devices):
        return max(33 - len(free), len(free)), _fullest(devices, task)
    by_room = sorted((d.left, at) for at, d in enumerate(devices) if _room(d, task))[: task.gpus]
    new = sum(left == 1000 for left, _ in by_room)
    if new:
        return max(50 - new, 33), _fullest(devices, task)
    percent = sum(left // 10 for left, _ in by_room)
    return max(100 - percent // 10, 50), _fullest(devices, task)


def least_allocated_score(cpu: tuple[int, int], memory: tuple[int, int], devices: list[Device], task: Task):
    """cpu, memory: (free after the task, capacity)."""
    parts = [100 * free // capacity for free, capacity in (cpu, memory)]
    return sum(parts) // 2, _fullest(devices, task)


def most_allocated_score(devices: list[Device], task: Task) -> tuple[int, int]:
    capacity = 1000 * len(devices)
    taken = capacity - sum(d.left for d in devices) + task.gpus * task.share
    return 100 * taken // capacity, _fullest(devices, task)


def _fullest(devices: list[Device], task: Task) -> int:
    """The device with room that has the least left, the lowest of equals; -1 where not exactly one is taken."""
    if task.gpus != 1:
        return -1
    return min((d.left, at) for at, d in enumerate(devices) if _room(d, task))[1]
