"""random: any node that fits, and on it any device with room. The floor that every policy must beat."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.parts import chance, roomy
from gpuwatch.placement.policy import ANY_DEVICE, POLICIES, Kernel, Policy, PolicyContext, Ranking, shares_one_device

_DEVICES = 2**20  # rows of the second draw, which picks the device, lie beyond those of the first


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    score = chance(seed, draw, row)
    if ask.gpus != 1:
        return score, -1
    best, at = -1, -1
    for device in range(state.left.shape[1]):
        here = chance(seed, draw, _DEVICES + device)
        if here > best and roomy(state, ask, row, device):
            best, at = here, device
    return score, at


@POLICIES.register("random")
class Random(Policy):
    """Every feasible node is equally likely."""

    local = False  # every placement draws anew

    def __init__(self, context: PolicyContext) -> None:
        self._seed = context.seed

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        score = np.array([chance(self._seed, draw, int(row)) for row in rows], dtype=np.int64)
        if not shares_one_device(shape):
            return Ranking(score=score, device=np.full(len(rows), ANY_DEVICE, dtype=np.int64))
        width = columns.left.shape[1]
        turn = np.array([chance(self._seed, draw, _DEVICES + device) for device in range(width)], dtype=np.int64)
        device: IntArray = np.where(roomy_devices(columns, shape, rows), turn, -1).argmax(axis=1)
        return Ranking(score=score, device=device)

    def kernel(self) -> Kernel:
        return _kernel
