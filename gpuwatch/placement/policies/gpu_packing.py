"""gpu_packing: devices in use first, then free devices of used nodes, then empty nodes, small ones before large."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import roomy, tightest
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device

_PERCENT = MILLI // 100


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    if ask.gpus == 0:
        return 0, -1
    devices, free, partly = 0, 0, 0
    for at in range(state.left.shape[1]):
        devices += state.usable[row, at]
        free += state.usable[row, at] and state.left[row, at] == MILLI
        if roomy(state, ask, row, at):
            partly += state.left[row, at] < MILLI
    device = tightest(state, ask, row)
    if free == devices:
        return max(33 - free, free), device
    new = max(0, ask.gpus - partly)  # devices in use are taken first
    if new > 0:
        return max(50 - new, 33), device
    # Several devices are whole ones, so only a single share gets here.
    return max(100 - state.left[row, device] // _PERCENT // 10, 50), device


@POLICIES.register("gpu_packing")
class GpuPacking(Policy):
    """A device in use: 100 less a tenth of its free percent, at least 50; free devices of a used node: 50 less their
    number, at least 33; a free node: 33 less its devices, at least their number. CPU-only: 0."""

    def __init__(self, context: PolicyContext) -> None:
        del context

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        device = tightest_device(columns, shape, rows)
        if shape.gpus == 0:
            return Ranking(score=np.zeros(len(rows), dtype=np.int64), device=device)
        left, usable = columns.left[rows], columns.usable[rows]
        free = (usable & (left == MILLI)).sum(axis=1)
        partly = (roomy_devices(columns, shape, rows) & (left < MILLI)).sum(axis=1)
        new = np.maximum(0, shape.gpus - partly)
        shared = np.maximum(100 - left[np.arange(len(rows)), device] // _PERCENT // 10, 50)
        score = np.where(new > 0, np.maximum(50 - new, 33), shared)
        score = np.where(free == usable.sum(axis=1), np.maximum(33 - free, free), score)
        return Ranking(score=score, device=device)

    def kernel(self) -> Kernel:
        return _kernel
