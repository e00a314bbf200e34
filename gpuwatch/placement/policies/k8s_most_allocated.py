"""k8s_most_allocated: the usual bin-packing advice, the node with most of its GPUs taken; ties by chance."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import free_of, tightest
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    capacity = 0
    for device in range(state.usable.shape[1]):
        capacity += MILLI * state.usable[row, device]
    if capacity == 0:
        return 0, -1
    return (capacity - free_of(state, row) + ask.gpus * ask.share) * 100 // capacity, tightest(state, ask, row)


@POLICIES.register("k8s_most_allocated")
class MostAllocated(Policy):
    """Percent of the node's GPU capacity taken with the job on it, in whole percents. The fullest device is shared."""

    random_ties = True

    def __init__(self, context: PolicyContext) -> None:
        del context

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        capacity = MILLI * columns.usable[rows].sum(axis=1)
        taken = capacity - columns.left[rows].sum(axis=1) + shape.milligpu
        score = np.where(capacity > 0, taken * 100 // np.maximum(capacity, 1), 0)
        return Ranking(score=score, device=tightest_device(columns, shape, rows))

    def kernel(self) -> Kernel:
        return _kernel
