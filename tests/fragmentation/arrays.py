"""Kernel inputs from plain node states."""

from __future__ import annotations

import numpy as np

from gpuwatch.fragmentation.kernel import MixTable, mix_table
from tests.reference.fragmentation import Device, Task
from tests.reference.states import MODELS, shape_of


def table_of_tasks(mix: list[tuple[Task, float]], models: tuple[str, ...] = MODELS) -> MixTable:
    return mix_table(models, [shape_of(task) for task, _ in mix], [share for _, share in mix])


def arrays(nodes: list[tuple[int, list[Device]]], models: tuple[str, ...] = MODELS):
    """(left, model, cpu_free) of the kernel; short nodes are padded."""
    width = max(len(devices) for _, devices in nodes)
    left = np.zeros((len(nodes), width), dtype=np.int64)
    model = np.full((len(nodes), width), -1, dtype=np.int64)
    for row, (_, devices) in enumerate(nodes):
        for at, device in enumerate(devices):
            left[row, at] = device.left
            model[row, at] = models.index(device.model) if device.model in models else -1
    return left, model, np.array([cpu for cpu, _ in nodes], dtype=np.int64)
