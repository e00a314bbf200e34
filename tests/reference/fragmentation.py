"""Slow, obvious twins, written from the definition: one node, one task, one device at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    gpus: int
    share: int
    cpu: int
    models: tuple[str, ...]


@dataclass(frozen=True)
class Device:
    model: str | None
    left: int


def fragment(cpu_free: int, devices: list[Device], task: Task) -> dict[str, float]:
    """Cause -> free milligpu of this node that the task cannot take."""
    out = {"cpu_only": 0, "no_access": 0, "gpu_lacking": 0, "cpu_lacking": 0, "both_lacking": 0}
    if task.gpus == 0:
        out["cpu_only"] = sum(device.left for device in devices)
        return out
    mine = []
    for device in devices:
        if task.models and device.model not in task.models:
            out["no_access"] += device.left
        else:
            mine.append(device)
    enough_gpu = len([device for device in mine if device.left >= task.share]) >= task.gpus
    enough_cpu = cpu_free >= task.cpu
    if enough_gpu and enough_cpu:
        out["gpu_lacking"] += sum(device.left for device in mine if device.left < task.share)
    elif enough_gpu:
        out["cpu_lacking"] += sum(device.left for device in mine)
    elif enough_cpu:
        out["gpu_lacking"] += sum(device.left for device in mine)
    else:
        out["both_lacking"] += sum(device.left for device in mine)
    return out


def expected_fragment(cpu_free: int, devices: list[Device], mix: list[tuple[Task, float]]) -> float:
    """F of one node: every cause counts, weighted by the task's share."""
    return sum(share * sum(fragment(cpu_free, devices, task).values()) for task, share in mix)
