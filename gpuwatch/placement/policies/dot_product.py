"""dot_product: the node whose free CPU and GPU are least aligned with the request, and on it the fullest device."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import free_of, tightest
from gpuwatch.placement.policies.best_fit import CPU_SCALE_MILLICORES, GPU_SCALE_MILLIGPU
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    cpu = 0.0
    if state.cpu_known[row]:
        cpu = state.cpu_free[row] / CPU_SCALE_MILLICORES * (ask.cpu / CPU_SCALE_MILLICORES)
    gpu = free_of(state, row) / GPU_SCALE_MILLIGPU * (ask.gpus * ask.share / GPU_SCALE_MILLIGPU)
    return int(100 * (1 - (cpu + gpu) / 2)), tightest(state, ask, row)


@POLICIES.register("dot_product")
class DotProduct(Policy):
    """Score int(100 x (1 - dot / 2)), dot = free . asked, both as parts of 128 CPU and 8 GPU."""

    def __init__(self, context: PolicyContext) -> None:
        del context

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        cpu = columns.cpu_free[rows] / CPU_SCALE_MILLICORES * (shape.cpu_millicores / CPU_SCALE_MILLICORES)
        # An unknown CPU capacity is aligned with nothing.
        cpu = np.where(columns.cpu_known[rows], cpu, 0.0)
        gpu = columns.left[rows].sum(axis=1) / GPU_SCALE_MILLIGPU * (shape.milligpu / GPU_SCALE_MILLIGPU)
        score = np.trunc(100 * (1 - (cpu + gpu) / 2)).astype(np.int64)
        return Ranking(score=score, device=tightest_device(columns, shape, rows))

    def kernel(self) -> Kernel:
        return _kernel
