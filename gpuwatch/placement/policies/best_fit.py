"""best_fit: the node with the least CPU and GPU left over, and on it the fullest device that still has room."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import free_of, tightest
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device

# The published scale: the largest node of the study, so that scores compare across clusters.
CPU_SCALE_MILLICORES = 128_000
GPU_SCALE_MILLIGPU = 8_000


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    gpu_over = (free_of(state, row) - ask.gpus * ask.share) / GPU_SCALE_MILLIGPU
    cpu_over = (state.cpu_free[row] - ask.cpu) / CPU_SCALE_MILLICORES if state.cpu_known[row] else gpu_over
    return int(100 * (1 - (0.5 * cpu_over + 0.5 * gpu_over))), tightest(state, ask, row)


@POLICIES.register("best_fit")
class BestFit(Policy):
    """Score int(100 x (1 - (0.5 x CPU left over / 128 CPU + 0.5 x GPU left over / 8 GPU))).

    The published policy then stretches the scores of all candidates to 0..100, which keeps their order and is left out.
    """

    def __init__(self, context: PolicyContext) -> None:
        del context  # neither the mix nor chance takes part

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        gpu_over = (columns.left[rows].sum(axis=1) - shape.milligpu) / GPU_SCALE_MILLIGPU
        cpu_over = (columns.cpu_free[rows] - shape.cpu_millicores) / CPU_SCALE_MILLICORES
        # Where nobody tells the CPU capacity, the devices alone decide.
        cpu_over = np.where(columns.cpu_known[rows], cpu_over, gpu_over)
        score = np.trunc(100 * (1 - (0.5 * cpu_over + 0.5 * gpu_over))).astype(np.int64)
        return Ranking(score=score, device=tightest_device(columns, shape, rows))

    def kernel(self) -> Kernel:
        return _kernel
