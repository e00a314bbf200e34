"""k8s_least_allocated: what a stock kube-scheduler does, the node with most CPU and memory left; ties by chance."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import tightest
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking, tightest_device


@kernel
def _left_percent(free: int, asked: int, capacity: int, known: bool) -> int:
    return (free - asked) * 100 // capacity if known and capacity > 0 else 0


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    cpu = _left_percent(state.cpu_free[row], ask.cpu, state.cpu_capacity[row], state.cpu_known[row])
    memory = _left_percent(state.memory_free[row], ask.memory, state.memory_capacity[row], state.memory_known[row])
    return (cpu + memory) // 2, tightest(state, ask, row)


@POLICIES.register("k8s_least_allocated")
class LeastAllocated(Policy):
    """Mean of the percents of CPU and memory left over, in whole percents as the scheduler counts.

    Its balance and spreading scores are not modelled. A share goes to the fullest device with room.
    """

    random_ties = True
    reads_memory = True

    def __init__(self, context: PolicyContext) -> None:
        del context

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        percents = [
            np.where(known[rows] & (capacity[rows] > 0), (free[rows] - asked) * 100 // np.maximum(capacity[rows], 1), 0)
            for free, asked, capacity, known in (
                (columns.cpu_free, shape.cpu_millicores, columns.cpu_capacity, columns.cpu_known),
                (columns.memory_free, shape.memory_bytes, columns.memory_capacity, columns.memory_known),
            )
        ]
        return Ranking(score=(percents[0] + percents[1]) // 2, device=tightest_device(columns, shape, rows))

    def kernel(self) -> Kernel:
        return _kernel
