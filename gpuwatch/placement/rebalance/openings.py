"""Where a piece could go, and what that costs: free room, room of a start not yet made, room that one more move makes.

A start that the plan has decided on is not yet made when the moves before it are, so its room may be given away: the
waiting job goes back to the queue, at the price of what it would have gained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import BoolArray, IntArray
from gpuwatch.placement.rebalance.asks import Ask, States, fitting, spot, tightest
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground, Started

_MOVE_CHARGE = 200  # in value: what a move more must be better by
_KEPT = 8  # places that are remembered, and whose loss of usable capacity is compared


@dataclass(frozen=True, slots=True)
class Opening:
    """A row with room for an ask. `loss`: value given up there; `moves`: further moves that make the room."""

    row: int
    loss: int
    moves: int = 0
    instead_of: Started | None = None
    after: int | None = None  # the piece that leaves first, to free room
    way_out: Opening | None = None  # where that piece goes


class Openings:
    """Answers for one state of the ground, for each kind of piece. `likely` (N,): value each row may still gain."""

    def __init__(self, ground: Ground, likely: IntArray) -> None:
        self._ground, self._likely = ground, likely
        self._free: dict[int, list[Opening]] = {}
        self._taken_over: dict[int, list[Opening]] = {}
        self._all: dict[int, list[Opening]] = {}
        self._starts = [step for step in ground.steps if isinstance(step, Started)]
        asks = ground.queue.asks
        self._start_states = without(ground, [(step.row, asks[step.which], step.devices) for step in self._starts])
        self._start_worth = np.array([asks[step.which].milligpu for step in self._starts], dtype=np.int64)
        found = [(at, way_out) for at in range(len(ground.pieces)) if (way_out := self._way_out(at))]
        self._leavers = [at for at, _ in found]
        self._ways_out = [way_out for _, way_out in found]
        self._leaver_loss = np.array([way_out.loss for way_out in self._ways_out], dtype=np.int64)
        leaving = [ground.pieces[at] for at in self._leavers]
        self._leaver_states = without(ground, [(piece.row, piece.ask, piece.gives) for piece in leaving])

    def known(self, kind: int) -> list[Opening]:
        """A few openings for pieces of `kind`, the cheapest first, by loss and a small charge for further moves."""
        if kind not in self._all:
            ask = self._ground.kinds[kind]
            found = [*self._free_places(kind), *self._instead(kind), *self._by_leaving(ask)]
            self._all[kind] = sorted(found, key=lambda each: each.loss + _MOVE_CHARGE * each.moves)[:_KEPT]
        return self._all[kind]

    def _free_places(self, kind: int) -> list[Opening]:
        if kind not in self._free:
            self._free[kind] = free_places(self._ground, self._ground.kinds[kind], self._likely)
        return self._free[kind]

    def _way_out(self, at: int) -> Opening | None:
        if not self._ground.may_move(at):
            return None
        row = self._ground.pieces[at].row
        kind = self._ground.kind_of[at]
        found = [each for each in (*self._free_places(kind), *self._instead(kind)) if each.row != row]
        return min(found, key=lambda each: each.loss, default=None)

    def _instead(self, kind: int) -> list[Opening]:
        if kind not in self._taken_over:
            self._taken_over[kind] = self._take_over(self._ground.kinds[kind])
        return self._taken_over[kind]

    def _take_over(self, ask: Ask) -> list[Opening]:
        at = fitting(self._ground.access, ask, self._start_states)
        best = at[np.argsort(self._start_worth[at], kind="stable")][:_KEPT]
        return [
            Opening(
                self._starts[each].row,
                WAITING_WEIGHT * int(self._start_worth[each]),
                instead_of=self._starts[each],
            )
            for each in best.tolist()
        ]

    def _by_leaving(self, ask: Ask) -> list[Opening]:
        states = self._leaver_states
        at = fitting(self._ground.access, ask, states)
        room = states.left[at].sum(axis=1)
        best = at[np.lexsort((at, room, self._likely[states.row[at]], self._leaver_loss[at]))][:_KEPT]
        return [
            Opening(
                int(states.row[each]),
                int(self._leaver_loss[each]),
                moves=1,
                after=self._leavers[each],
                way_out=self._ways_out[each],
            )
            for each in best.tolist()
        ]


def free_places(ground: Ground, ask: Ask, likely: IntArray, never: BoolArray | None = None) -> list[Opening]:
    """Free room for `ask`, where it takes least of what the mix could use first, then the tightest."""
    at = fitting(ground.access, ask, ground.states)
    if never is not None:
        at = at[~never[at]]
    if not len(at):
        return []
    at = at[_by_tightness(ground, ask, at, likely)][:_KEPT]
    after = States(at, ground.states.cpu[at] - ask.cpu, ground.states.memory[at], ground.states.left[at])
    for each in range(len(at)):
        after.left[each, list(spot(ground.access, ask, after, each))] -= ask.share
    loss = ground.usable[at] - ground.usable_in(after)
    return [Opening(int(at[each]), int(loss[each])) for each in np.argsort(loss, kind="stable").tolist()]


def _by_tightness(ground: Ground, ask: Ask, at: IntArray, likely: IntArray) -> IntArray:
    states = ground.states
    if ask.gpus == 1:
        over = states.left[at, tightest(ground.access, ask, states, at)] - ask.share
    else:  # CPU is worth least where no GPU is left; a member of several devices wants a node that it fills
        over = states.left[at].sum(axis=1)
    order: IntArray = np.lexsort((at, states.cpu[at], likely[at], over))
    return order


def without(ground: Ground, leaving: list[tuple[int, Ask, tuple[int, ...]]]) -> States:
    """One state for each of (row, ask, devices): the row as if that had left it."""
    row = np.array([each[0] for each in leaving], dtype=np.int64)
    states = States(row, ground.states.cpu[row], ground.states.memory[row], ground.states.left[row])
    for at, (_, ask, devices) in enumerate(leaving):
        states.cpu[at] += ask.cpu
        states.memory[at] += ask.memory
        states.left[at, list(devices)] += ask.share
    return states
