"""fgd: the node (and device) where the expected fragment of the demand mix grows least, as published."""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.fit.columns import Columns, FloatArray, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.fragment_gain import FragmentGain
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import fragment, like_earlier, roomy
from gpuwatch.placement.policy import POLICIES, Kernel, Policy, PolicyContext, Ranking


@kernel
def _after(state: State, mix: Mix, ask: Ask, row: int, only: int) -> float:
    """F of the node with the ask on device `only`, or on the lowest ones with room for only == -1."""
    taken = 0
    for device in range(state.left.shape[1]):
        state.scratch[device] = state.left[row, device]
        if taken < ask.gpus and (device == only or (only < 0 and roomy(state, ask, row, device))):
            state.scratch[device] -= ask.share
            taken += 1
    return fragment(mix, state.scratch, state.model[row], state.cpu_free[row] - ask.cpu)


def _kernel(state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[()]) -> tuple[int, int]:
    before = state.fragment[row]
    if ask.gpus != 1:
        return int(100 / (1 + math.exp(-(before - _after(state, mix, ask, row, -1)) / MILLI))), -1
    best, at = -1, -1
    for device in range(state.left.shape[1]):
        if roomy(state, ask, row, device) and not like_earlier(state, ask, row, device):
            score = int(100 / (1 + math.exp(-(before - _after(state, mix, ask, row, device)) / MILLI)))
            if score > best:
                best, at = score, device
    return best, at


@POLICIES.register("fgd")
class FragmentationGradientDescent(Policy):
    """Score int(100 x sigmoid((F before - F after) / 1000)); a single device is tried on every one with room."""

    def __init__(self, context: PolicyContext) -> None:
        self._gain = FragmentGain(context.mix, _score)

    def freeze(self, columns: Columns) -> None:
        self._gain.freeze(columns)

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        return self._gain.rank(columns, shape, rows)

    def kernel(self) -> Kernel:
        return _kernel


def _score(gain: FloatArray) -> IntArray:
    return (100 / (1 + np.exp(-gain / MILLI))).astype(np.int64)
