"""best_fit: the node with the least CPU and GPU left over, and on it the fullest device that still has room."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.policy import POLICIES, PolicyContext, Ranking, tightest_device

# The published scale: the largest node of the study, so that scores compare across clusters.
CPU_SCALE_MILLICORES = 128_000
GPU_SCALE_MILLIGPU = 8_000


@POLICIES.register("best_fit")
class BestFit:
    """Score int(100 x (1 - (0.5 x CPU left over / 128 CPU + 0.5 x GPU left over / 8 GPU))).

    The published policy then stretches the scores of all candidates to 0..100, which keeps their order and is left out.
    """

    local = True

    def __init__(self, context: PolicyContext) -> None:
        del context  # neither the mix nor chance takes part

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray) -> Ranking:
        gpu_over = (columns.left[rows].sum(axis=1) - shape.milligpu) / GPU_SCALE_MILLIGPU
        cpu_over = (columns.cpu_free[rows] - shape.cpu_millicores) / CPU_SCALE_MILLICORES
        # Where nobody tells the CPU capacity, the devices alone decide.
        cpu_over = np.where(columns.cpu_known[rows], cpu_over, gpu_over)
        score = np.trunc(100 * (1 - (0.5 * cpu_over + 0.5 * gpu_over))).astype(np.int64)
        return Ranking(score=score, device=tightest_device(columns, shape, rows))

    def placed(self, row: int, shape: DemandShape) -> None:
        """Remembers nothing."""
