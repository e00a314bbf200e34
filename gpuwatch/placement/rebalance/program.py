"""The integer program of the exact planner (imported only where a cluster is small enough: it needs scipy)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import ENOUGH
from gpuwatch.model.units import MIB, MILLI
from gpuwatch.placement.rebalance.asks import Ask
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground, Moved, Started, Step
from gpuwatch.placement.rebalance.solver import Model, Terms, run

_KNOWN = ENOUGH // 2  # amounts beyond it stand for a capacity that nobody told


@dataclass(frozen=True, slots=True)
class Solved:
    """Steps in no order, and the value of the end state against the state now, moves charged."""

    value: float
    steps: list[Step]


@dataclass(slots=True)
class _Put:
    """Where one member, or some equal ones, may go: a count per row, a count per device."""

    ask: Ask
    count: dict[int, int] = field(default_factory=dict)
    devices: dict[tuple[int, int], int] = field(default_factory=dict)


def solve(ground: Ground, least_gain: int, most_variables: int, seconds: float) -> Solved | str:
    """The best end state, or the reason why there is none to tell."""
    model = Model()
    stays = [model.variable(1) for _ in ground.pieces]
    pieces = [_put(ground, model, piece.ask, 1, piece.never_rows) for piece in ground.pieces]
    waits = [_put(ground, model, ask, n, ()) for ask, n in zip(ground.queue.asks, ground.queue.supply, strict=True)]
    for at, put in enumerate(pieces):
        model.bound({stays[at]: 1.0, **dict.fromkeys(put.count.values(), 1.0)}, 1, 1)
        for variable in put.count.values():
            model.gain[variable] -= least_gain
    for ask, n, put in zip(ground.queue.asks, ground.queue.supply, waits, strict=True):
        model.bound(dict.fromkeys(put.count.values(), 1.0), 0, n)
        for variable in put.count.values():
            model.gain[variable] += WAITING_WEIGHT * ask.milligpu
    _budgets(ground, model, stays)
    for row in range(len(ground.states)):
        _row(ground, model, row, stays, pieces, waits)
    if not model.gain:
        return Solved(0.0, [])
    if len(model.gain) > most_variables:
        return f"too_large: {len(model.gain)} variables; exact up to {most_variables}"
    answer = run(model, seconds)
    if answer is None:
        return f"not_solved_in_time: {seconds:g} s"
    chosen, value = answer
    steps: list[Step] = [Moved(at, *where) for at, put in enumerate(pieces) for where in _places(put, chosen)]
    steps += [Started(which, *where) for which, put in enumerate(waits) for where in _places(put, chosen)]
    return Solved(value - float(ground.usable.sum()), steps)


def _put(ground: Ground, model: Model, ask: Ask, most: int, never: Iterable[int]) -> _Put:
    put = _Put(ask)
    devices = ground.access.devices(ask)
    for row in np.flatnonzero(ground.access.rows(ask)).tolist():
        if row in never or devices[row].sum() < ask.gpus:
            continue
        put.count[row] = model.variable(most)
        if ask.gpus:
            terms: Terms = {put.count[row]: -float(ask.gpus)}
            for device in np.flatnonzero(devices[row]).tolist():
                put.devices[row, device] = model.variable(min(most, MILLI // ask.share))
                terms[put.devices[row, device]] = 1.0
            model.bound(terms, 0, 0)
    return put


def _budgets(ground: Ground, model: Model, stays: list[int]) -> None:
    def moved(chosen: list[int], weights: list[float], most: float) -> None:
        model.bound({stays[at]: w for at, w in zip(chosen, weights, strict=True)}, sum(weights) - most, np.inf)

    everyone = list(range(len(stays)))
    moved(everyone, [1.0] * len(stays), ground.budget.moves)
    if np.isfinite(ground.budget.gpu_hours):
        moved(everyone, [piece.price for piece in ground.pieces], ground.budget.gpu_hours)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, piece in enumerate(ground.pieces):
        groups["owner", piece.owner].append(at)
        groups["tenant", piece.tenant].append(at)
    for (kind, _), members in groups.items():
        most = ground.pieces[members[0]].owner_most if kind == "owner" else ground.budget.per_tenant
        if most is not None:
            moved(members, [1.0] * len(members), most)


def _row(ground: Ground, model: Model, row: int, stays: list[int], pieces: list[_Put], waits: list[_Put]) -> None:
    """What a node has, gives and keeps; and what of the rest the mix can use."""
    here = ground.here[row]
    cpu, memory = int(ground.states.cpu[row]), int(ground.states.memory[row])
    cpu_left: Terms = defaultdict(float)
    memory_left: Terms = defaultdict(float)
    left: list[Terms] = [defaultdict(float) for _ in range(ground.states.left.shape[1])]
    base = [float(amount) for amount in ground.states.left[row]]
    cpu_base, memory_base = float(cpu), memory / MIB
    for at in here:  # what a piece gives back, it takes while it stays
        piece = ground.pieces[at]
        cpu_base += piece.ask.cpu
        memory_base += piece.ask.memory / MIB
        cpu_left[stays[at]] -= piece.ask.cpu
        memory_left[stays[at]] -= piece.ask.memory / MIB
        for device in piece.gives:
            base[device] += piece.ask.share
            left[device][stays[at]] -= piece.ask.share
    for put in (*pieces, *waits):
        if row in put.count:
            cpu_left[put.count[row]] -= put.ask.cpu
            memory_left[put.count[row]] -= put.ask.memory / MIB
        for device, terms in enumerate(left):
            if (row, device) in put.devices:
                terms[put.devices[row, device]] -= put.ask.share
    if cpu < _KNOWN:
        model.bound(cpu_left, min(0.0, float(cpu)) - cpu_base, np.inf)
    if memory < _KNOWN:
        model.bound(memory_left, min(0.0, memory / MIB) - memory_base, np.inf)
    for device, terms in enumerate(left):
        model.bound(terms, -base[device], np.inf)
    _usable(ground, model, row, left, base, cpu_left, cpu_base if cpu < _KNOWN else None)


def _usable(
    ground: Ground,
    model: Model,
    row: int,
    left: Iterable[Terms],
    base: list[float],
    cpu_left: Terms,
    cpu_base: float | None,
) -> None:
    mix = ground.mix
    total = float(mix.weight.sum())
    devices = [(d, terms) for d, terms in enumerate(left) if ground.columns.usable[row, d] and ground.columns.open[row]]
    roomy: dict[tuple[int, int], int] = {}
    for group, share in enumerate(mix.share.tolist()):
        for device, terms in devices:
            if mix.accepts[ground.columns.model[row, device], group]:
                roomy[group, device] = flag = model.variable(1)
                model.bound({**terms, flag: -float(share)}, -base[device], np.inf)
    for at, weight in enumerate(mix.weight.tolist()):
        group = int(mix.group[at])
        mine = [(device, terms) for device, terms in devices if (group, device) in roomy]
        if len(mine) < mix.gpus[at] or not weight:
            continue
        runs = model.variable(1)
        model.bound({**{roomy[group, d]: 1.0 for d, _ in mine}, runs: -float(mix.gpus[at])}, 0, np.inf)
        if cpu_base is not None and mix.cpu[at] > 0:
            # cpu left >= c where it runs; where it does not, any amount will do
            lowest = min(0.0, cpu_base + sum(w * model.upper[v] for v, w in cpu_left.items()))
            need = float(mix.cpu[at])
            model.bound({**cpu_left, runs: lowest - need}, lowest - cpu_base, np.inf)
        for device, terms in mine:
            taken = model.variable(MILLI, gain=weight / total, whole=False)
            model.bound({taken: 1.0, roomy[group, device]: -float(MILLI)}, -np.inf, 0)
            model.bound({taken: 1.0, runs: -float(MILLI)}, -np.inf, 0)
            model.bound({**terms, taken: -1.0}, -base[device], np.inf)


def _places(put: _Put, chosen: list[int]) -> list[tuple[int, tuple[int, ...]]]:
    """(row, devices) of each member that is put somewhere."""
    out: list[tuple[int, tuple[int, ...]]] = []
    for row, variable in put.count.items():
        count = chosen[variable]
        taken = [d for (r, d), v in put.devices.items() if r == row for _ in range(chosen[v])]
        if put.ask.gpus == 1:
            out += [(row, (device,)) for device in taken]
            continue
        # Members of several whole devices: no device serves two of them.
        out += [(row, tuple(taken[n * put.ask.gpus : (n + 1) * put.ask.gpus])) for n in range(count)]
    return out
