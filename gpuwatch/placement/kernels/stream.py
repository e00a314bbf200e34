"""The loops around a policy's kernel: keep scores, find the best node, book, give back, run a stream."""

from __future__ import annotations

from typing import Any

from gpuwatch.fit.columns import FloatArray, IntArray
from gpuwatch.placement.kernels.arrays import INFEASIBLE, Ask, Asks, Kept, Mix, State, ask_at
from gpuwatch.placement.kernels.counts import HOLD, LEVEL, NEVER
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import chance, fits, fragment, roomy

# score(state, mix, ask, row, draw, seed, tables) -> (score, device): a policy's kernel.
Score = Any


@kernel
def refresh(
    score: Score, state: State, mix: Mix, ask: Ask, kept: Kept, at: int, local: bool, seed: int, tables: Any
) -> None:
    """Brings kind `at` up to date: all rows at first and for policies that are not local, else the changed ones."""
    seen, now, draw = kept.seen[at], kept.counts[0], kept.counts[1]
    kept.seen[at] = now
    if len(state.holding.level):
        score(state, mix, ask, HOLD, draw, seed, tables)
    if seen < 0 or not local:
        for row in range(len(state.open)):
            _rescore(score, state, mix, ask, kept, at, row, draw, seed, tables)
        return
    mark = at * len(kept.changed) + now  # no two looks share it
    for change in range(seen, now):
        row = kept.changed[change]
        if kept.stamp[row] != mark:
            kept.stamp[row] = mark
            _rescore(score, state, mix, ask, kept, at, row, draw, seed, tables)


@kernel
def _rescore(
    score: Score, state: State, mix: Mix, ask: Ask, kept: Kept, at: int, row: int, draw: int, seed: int, tables: Any
) -> None:
    if fits(state, ask, row):
        kept.score[at, row], kept.device[at, row] = score(state, mix, ask, row, draw, seed, tables)
    else:
        kept.score[at, row] = INFEASIBLE


@kernel
def best(state: State, ask: Ask, kept: Kept, at: int, random_ties: bool, seed: int) -> int:
    """The row of the highest score with enough memory, ties by order or by chance; -1 when it fits nowhere.

    Rows that are held back come after all others, or not at all.
    """
    found, top, place = -1, INFEASIBLE, 0
    holds = len(state.holding.level) > 0
    for row in range(len(state.open)):
        here = kept.score[at, row]
        if holds and here != INFEASIBLE:
            level = state.holding.level[row]
            here = INFEASIBLE if level >= NEVER else here - level * LEVEL
        if here < top or here == INFEASIBLE or state.memory_free[row] < ask.memory:
            continue
        turn = chance(seed, kept.counts[1], row) if random_ties else state.order[row]
        if here > top or turn < place:
            found, top, place = row, here, turn
    return found


@kernel
def book(state: State, mix: Mix, ask: Ask, kept: Kept, row: int, device: int, taken: IntArray) -> None:
    """Takes one member's resources on `row`; `taken` (W,) gets the devices, -1 behind the last."""
    count = 0
    for other in range(state.left.shape[1]):
        if count < ask.gpus and (other == device or (device < 0 and roomy(state, ask, row, other))):
            taken[count] = other
            count += 1
    for at in range(count, len(taken)):
        taken[at] = -1
    kept.counts[1] += 1
    _shift(state, mix, ask, kept, row, taken, 1)


@kernel
def give_back(state: State, mix: Mix, ask: Ask, kept: Kept, row: int, taken: IntArray) -> None:
    """Undoes book() with the devices that it told."""
    _shift(state, mix, ask, kept, row, taken, -1)


@kernel
def book_again(state: State, mix: Mix, ask: Ask, kept: Kept, row: int, taken: IntArray) -> None:
    """Undoes give_back()."""
    _shift(state, mix, ask, kept, row, taken, 1)


@kernel
def _shift(state: State, mix: Mix, ask: Ask, kept: Kept, row: int, taken: IntArray, sign: int) -> None:
    for at in range(len(taken)):
        if taken[at] < 0:
            break
        state.left[row, taken[at]] -= sign * ask.share
        state.total[0] -= sign * ask.share
    state.cpu_free[row] -= sign * ask.cpu
    state.memory_free[row] -= sign * ask.memory
    if ask.gpus > 0:
        state.running[row, ask.size] += sign
    before = state.fragment[row]
    state.fragment[row] = fragment(mix, state.left[row], state.model[row], state.cpu_free[row])
    state.total[1] += state.fragment[row] - before
    kept.changed[kept.counts[0]] = row
    kept.counts[0] += 1


@kernel
def run(
    score: Score,
    state: State,
    mix: Mix,
    asks: Asks,
    kind: IntArray,
    memory: IntArray,
    kept: Kept,
    local: bool,
    random_ties: bool,
    seed: int,
    tables: Any,
    taken: IntArray,
    placed: IntArray,
    free: FloatArray,
    fragments: FloatArray,
) -> None:
    """Arrivals one after the other; `kind` (T,) tells the ask, `memory` (T,) its own memory.

    taken (W,) is scratch. Fills placed (T,) with rows or -1, free and fragments (T,) with the cluster's totals after
    each arrival.
    """
    for at in range(len(kind)):
        ask = ask_at(asks, kind[at], memory[at])
        refresh(score, state, mix, ask, kept, kind[at], local, seed, tables)
        row = best(state, ask, kept, kind[at], random_ties, seed)
        placed[at] = row
        if row >= 0:
            book(state, mix, ask, kept, row, kept.device[kind[at], row], taken)
        free[at] = state.total[0]
        fragments[at] = state.total[1]
