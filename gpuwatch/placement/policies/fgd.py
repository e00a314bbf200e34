"""fgd: the node (and device) where the expected fragment of the demand mix grows least, as published."""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, bounded
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import fragment, roomy
from gpuwatch.placement.policy import ANY_DEVICE, POLICIES, Kernel, Policy, PolicyContext, Ranking, shares_one_device


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
        if roomy(state, ask, row, device) and not _like_earlier(state, ask, row, device):
            score = int(100 / (1 + math.exp(-(before - _after(state, mix, ask, row, device)) / MILLI)))
            if score > best:
                best, at = score, device
    return best, at


@kernel
def _like_earlier(state: State, ask: Ask, row: int, device: int) -> bool:
    """Whether an earlier device that the ask could share stands exactly like this one: it cannot score lower."""
    for other in range(device):
        same = state.left[row, other] == state.left[row, device] and state.model[row, other] == state.model[row, device]
        if same and roomy(state, ask, row, other):
            return True
    return False


@POLICIES.register("fgd")
class FragmentationGradientDescent(Policy):
    """Score int(100 x sigmoid((F before - F after) / 1000)); a single device is tried on every one with room."""

    def __init__(self, context: PolicyContext) -> None:
        self._mix = context.mix

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        if not shares_one_device(shape):
            after = _minus(columns.left[rows], _lowest(roomy_devices(columns, shape, rows), shape), shape)
            score = self._score(columns, shape, rows, after)
            return Ranking(score=score, device=np.full(len(rows), ANY_DEVICE, dtype=np.int64))
        # One line per pair (node, device). A device just like an earlier one on its node cannot score higher.
        at, device = np.nonzero(_first_of_kind(roomy_devices(columns, shape, rows), columns, rows))
        after = columns.left[rows[at]]
        after[np.arange(len(at)), device] -= shape.milligpu_per_gpu
        score = np.full(columns.left[rows].shape, -1, dtype=np.int64)
        score[at, device] = self._score(columns, shape, rows[at], after)
        best = score.argmax(axis=1)
        return Ranking(score=score[np.arange(len(rows)), best], device=best)

    def kernel(self) -> Kernel:
        return _kernel

    def _score(self, columns: Columns, shape: DemandShape, rows: IntArray, after: IntArray) -> IntArray:
        cpu = columns.cpu_free[rows]
        gain = self._fragment(columns, rows, columns.left[rows], cpu) - self._fragment(
            columns, rows, after, cpu - shape.cpu_millicores
        )
        return (100 / (1 + np.exp(-gain / MILLI))).astype(np.int64)

    def _fragment(self, columns: Columns, rows: IntArray, left: IntArray, cpu: IntArray) -> FloatArray:
        return fragment_of_nodes(self._mix, left, columns.model[rows], cpu)


def _lowest(roomy: BoolArray, shape: DemandShape) -> BoolArray:
    """The lowest devices that a member of several (or of none) takes."""
    if shape.mig_profile:
        return np.zeros_like(roomy)
    return roomy & (roomy.cumsum(axis=1) <= shape.gpus)


def _minus(left: IntArray, taken: BoolArray, shape: DemandShape) -> IntArray:
    return left - taken * bounded(shape.milligpu_per_gpu)


def _first_of_kind(roomy: BoolArray, columns: Columns, rows: IntArray) -> BoolArray:
    """(rows, W) devices with room that differ in model or room left from every earlier one on their node."""
    width = columns.left.shape[1]
    kind = columns.left[rows] * (len(columns.models) + 1) + columns.model[rows]
    same = (kind[:, :, None] == kind[:, None, :]) & roomy[:, None, :]
    earlier = np.tril(np.ones((width, width), dtype=np.bool_), k=-1)
    first: BoolArray = roomy & ~(same & earlier).any(axis=2)
    return first
