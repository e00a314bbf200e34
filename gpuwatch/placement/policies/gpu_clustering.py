"""gpu_clustering: nodes that run jobs of the same size, the fuller the better; on them the fullest device."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray, size_of
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import free_of, tightest
from gpuwatch.placement.policies.best_fit import GPU_SCALE_MILLIGPU
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device

_STEP = 25  # four classes share the scores 0..100


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    if ask.gpus == 0:
        return 0, -1
    kinds = 0
    for size in range(state.running.shape[1]):
        kinds += state.running[row, size] > 0
    same = state.running[row, ask.size] > 0
    level = (3 if kinds == 1 else 2) if same else int(kinds == 0)
    full = max(0, GPU_SCALE_MILLIGPU - free_of(state, row))
    return _STEP * level + _STEP * full // GPU_SCALE_MILLIGPU, tightest(state, ask, row)


@POLICIES.register("gpu_clustering")
class GpuClustering(Policy):
    """75 where only this size runs, 50 where it runs among others, 25 on empty nodes, else 0; plus up to 25 for full.

    Sizes are parts of a device and each number of whole devices.
    """

    def __init__(self, context: PolicyContext) -> None:
        del context

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        device = tightest_device(columns, shape, rows)
        if shape.gpus == 0:
            return Ranking(score=np.zeros(len(rows), dtype=np.int64), device=device)
        here = columns.running[rows]
        kinds = (here > 0).sum(axis=1)
        same = here[:, size_of(shape)] > 0
        level = np.where(same, np.where(kinds == 1, 3, 2), np.where(kinds == 0, 1, 0))
        full = np.maximum(0, GPU_SCALE_MILLIGPU - columns.left[rows].sum(axis=1))
        return Ranking(score=_STEP * level + _STEP * full // GPU_SCALE_MILLIGPU, device=device)

    def kernel(self) -> Kernel:
        return _kernel
