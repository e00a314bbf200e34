"""Which nodes to hold back for jobs that have no other choice: counts over all nodes, and the rule.

Two kinds of capacity are scarce: nodes on which nothing runs, for jobs that take whole nodes, and models, for jobs that
accept no other. Each is held back from jobs with a choice while no more of it is left than is expected to be asked for
before the free capacity is used up.
"""

from __future__ import annotations

import math

from gpuwatch.fit.columns import BoolArray, Columns
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.counts import LAST, NEVER, TAKE, Holding
from gpuwatch.placement.kernels.jit import kernel

SURELY = 6.0  # standard deviations above the expected whole-node jobs: those nodes go last
STRICTLY = 3.0  # standard deviations alone: those nodes are not given away at all ...
_WHOLE = (15, 16)  # share of the CPU that is free on a node called whole
MOST = 20  # ... but never more than one in this many nodes of a kind: a small cluster holds none


def whole_nodes(columns: Columns) -> BoolArray:
    """(N,) open nodes with every usable device free and nearly all of the CPU: system pods leave a node whole."""
    free = ((columns.left == MILLI) | ~columns.usable).all(axis=1) & columns.usable.any(axis=1)
    whole: BoolArray = free & columns.open & (_WHOLE[1] * columns.cpu_free >= _WHOLE[0] * columns.cpu_capacity)
    return whole


@kernel
def hold(state: State, mix: Mix, ask: Ask) -> None:
    """Fills state.holding.level for this ask."""
    holding, width = state.holding, state.left.shape[1]
    holding.whole[:] = 0
    holding.room[:] = 0
    holding.running[:] = 0
    free, devices = 0, 0
    for row in range(len(state.open)):
        whole = state.open[row]
        for device in range(width):
            if state.usable[row, device]:
                devices += 1
                free += state.left[row, device]
                holding.room[state.model[row, device]] += state.left[row, device]
                whole = whole and state.left[row, device] == MILLI
        for size in range(2, min(width, len(holding.running) - 1) + 1):
            holding.running[size] += state.running[row, size]
        whole = whole and _WHOLE[1] * state.cpu_free[row] >= _WHOLE[0] * state.cpu_capacity[row]
        whole = whole and holding.devices[holding.kind[row]] > 0
        holding.level[row] = whole
        holding.whole[holding.kind[row]] += whole
    decide(holding, mix, ask, free, devices * MILLI)
    for row in range(len(state.open)):
        kind = holding.kind[row]
        level = holding.limit[kind] if holding.level[row] else TAKE
        holding.level[row] = level + (LAST if holding.scarce[holding.model[kind]] else TAKE)


@kernel
def decide(holding: Holding, mix: Mix, ask: Ask, free: int, capacity: int) -> None:
    """From whole, room and running: the limit of each kind of node for this ask, and the scarce models."""
    holding.need[:] = 0
    for kind in range(len(holding.devices)):
        holding.limit[kind] = TAKE
        size = holding.devices[kind]
        if size < 2 or ask.gpus >= size:
            continue
        # Of what is asked for, the share that whole-node jobs of this size run with by now, one more to begin with.
        jobs = holding.running[min(size, len(holding.running) - 1)] + 1
        share = jobs * size * MILLI / (capacity - free + size * MILLI)
        expected = share * holding.nodes[kind] * free / max(capacity, 1)
        kept = min(expected + SURELY * math.sqrt(expected), holding.nodes[kind])
        holding.need[holding.model[kind]] += kept * size * MILLI
        holding.limit[kind] = _limit(holding, kind, kept, STRICTLY * math.sqrt(expected))
    for model in range(len(holding.room)):
        held = holding.need[model] + _exclusive(holding, mix, ask, model, free)
        holding.scarce[model] = ask.gpus > 0 and holding.room[model] <= held


@kernel
def _limit(holding: Holding, kind: int, kept: float, strictly: float) -> int:
    """How far whole nodes of this kind are held back."""
    whole, nodes = holding.whole[kind], holding.nodes[kind]
    if whole <= min(strictly, nodes / MOST):
        return NEVER
    alike, left = 0, 0
    for other in range(len(holding.devices)):
        if holding.devices[other] == holding.devices[kind]:
            alike += holding.nodes[other]
            left += holding.whole[other]
    # No kind is used up before the others: some jobs will fit on this one alone.
    rare = whole * alike < left * nodes
    return LAST if rare or whole <= kept else TAKE


@kernel
def _exclusive(holding: Holding, mix: Mix, ask: Ask, model: int, free: int) -> float:
    """Milligpu of `model` that shapes with fewer models to choose from than the ask will want of the free capacity."""
    wanted, demand = 0.0, 0.0
    for group in range(len(mix.share)):
        asked = 0.0
        for at in range(mix.start[group], mix.start[group + 1]):
            asked += mix.weight[at] * mix.gpus[at]
        asked *= mix.share[group]
        demand += asked
        fewer, within, room = False, True, 0
        for other in range(len(ask.accepts)):
            if mix.accepts[other, group]:
                room += holding.room[other]
                within = within and ask.accepts[other]
            elif ask.accepts[other]:
                fewer = True
        if within and fewer and mix.accepts[model, group] and room > 0:
            wanted += asked * holding.room[model] / room
    return wanted * free / demand if demand > 0 else 0.0
