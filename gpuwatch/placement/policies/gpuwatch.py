"""gpuwatch: where typical arrivals would leave least unused, holding back what some jobs cannot do without."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray, bounded
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import INFEASIBLE, Ask, Mix, State, ask_at, asks_of, mix_of
from gpuwatch.placement.kernels.counts import HOLD, TAKE, holding_of
from gpuwatch.placement.kernels.holding import decide, hold, whole_nodes
from gpuwatch.placement.kernels.lookahead import NOTHING, Arrivals, Memory, unused_with
from gpuwatch.placement.kernels.parts import like_earlier, roomy
from gpuwatch.placement.lookahead import arrivals_of, empty_memory, unused
from gpuwatch.placement.policy import ANY_DEVICE, POLICIES, Kernel, Policy, PolicyContext, Ranking, shares_one_device


def _kernel(
    state: State, mix: Mix, ask: Ask, row: int, draw: int, seed: int, tables: tuple[Arrivals, Memory]
) -> tuple[int, int]:
    arrivals, memory = tables
    if row == HOLD:
        hold(state, mix, ask)
        return 0, -1
    before = unused_with(arrivals, memory, state, ask, row, NOTHING)
    if ask.gpus != 1:
        return before - unused_with(arrivals, memory, state, ask, row, -1), -1
    least, at = -1, -1
    for device in range(state.left.shape[1]):
        if roomy(state, ask, row, device) and not like_earlier(state, ask, row, device):
            after = unused_with(arrivals, memory, state, ask, row, device)
            if at < 0 or after < least:
                least, at = after, device
    return before - least, at


@POLICIES.register("gpuwatch")
class LookAhead(Policy):
    """Score: by how much less the same typical arrivals leave unused of the node, with the member on it, milligpu.

    The arrivals are drawn from the demand mix, and fill each node until nothing fits. Held back: whole nodes from jobs
    that do not take whole nodes, and models from jobs that accept more; see kernels/holding.py.
    """

    holds = True

    def __init__(self, context: PolicyContext) -> None:
        self._mix = mix_of(context.mix)
        self._arrivals = arrivals_of(context.mix)
        self.tables: tuple[Any, ...] = (self._arrivals, empty_memory())

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        left, model, cpu = columns.left[rows], columns.model[rows], columns.cpu_free[rows]
        before, later = unused(self._arrivals, left, model, cpu), cpu - bounded(shape.cpu_millicores)
        room, share = roomy_devices(columns, shape, rows), bounded(shape.milligpu_per_gpu)
        if not shares_one_device(shape):
            taken = room & (room.cumsum(axis=1) <= shape.gpus) & (not shape.mig_profile)
            score = before - unused(self._arrivals, left - taken * share, model, later)
            return Ranking(score=score, device=np.full(len(rows), ANY_DEVICE, dtype=np.int64))
        at, device = np.nonzero(room)
        after = left[at]
        after[np.arange(len(at)), device] -= share
        score = np.full(left.shape, INFEASIBLE)
        score[at, device] = before[at] - unused(self._arrivals, after, model[at], later[at])
        best = score.argmax(axis=1)
        return Ranking(score=score[np.arange(len(rows)), best], device=best)

    def held(self, columns: Columns, shape: DemandShape) -> IntArray:
        holding = holding_of(columns, holds=True)
        whole = whole_nodes(columns)
        np.add.at(holding.whole, holding.kind, whole)
        np.add.at(holding.room, columns.model[columns.usable], columns.left[columns.usable])
        holding.running[:] = columns.running.sum(axis=0)
        ask = ask_at(asks_of(columns, [shape]), 0, 0)
        decide(holding, self._mix, ask, int(holding.room.sum()), MILLI * int(columns.usable.sum()))
        return np.where(whole, holding.limit[holding.kind], TAKE) + holding.scarce[holding.model[holding.kind]]

    def kernel(self) -> Kernel:
        return _kernel
