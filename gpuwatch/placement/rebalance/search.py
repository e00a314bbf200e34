"""Local search: the compound of moves with the highest gain a move, again and again, until none is worth it.

A compound takes one, two or three pieces off a node (or to another device of it), and what waits fills the room. Its
worth is estimated for all nodes at once; then it is done, measured, and taken back when it did not keep its promise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuwatch.placement.rebalance.compounds import DEPTH, Compounds
from gpuwatch.placement.rebalance.doing import Doing
from gpuwatch.placement.rebalance.ground import Ground
from gpuwatch.placement.rebalance.openings import Openings

_PATIENCE = 120  # compounds in a row that did not keep their promise: the estimates of this round are used up
_ROUND_RATIO = 0.3  # a round goes on down to this part of its best compound's gain a move


class Search:
    """One search on `ground`."""

    def __init__(
        self,
        ground: Ground,
        least_gain: int,
        worth_it: Callable[[int, float], bool],
        progress: Callable[[int], None],
    ) -> None:
        """least_gain: value below which one move is not worth it. worth_it(value gained, GPU-hours lost)."""
        self.ground = ground
        self._compounds = Compounds(ground, least_gain)
        self._doing = Doing(ground, least_gain, worth_it, np.zeros(len(ground.states), dtype=np.int64))
        self._progress = progress

    def run(self) -> None:
        """Until no compound of any depth is worth its moves."""
        for row in self._rows_that_start():
            self.ground.refill(row)
        depth = 1
        while depth <= DEPTH + 1 and len(self.ground.moved) < self.ground.budget.moves:
            if self._round(depth):
                depth = 1
            else:
                depth += 1
            self._progress(len(self.ground.moved))

    def _rows_that_start(self) -> list[int]:
        worth, _ = self.ground.queue.worth(self.ground.states)
        rows = np.flatnonzero(worth)
        return [int(row) for row in rows[np.argsort(-worth[rows], kind="stable")]]

    def _round(self, depth: int) -> int:
        found = self._compounds.found(Openings(self.ground, self._doing.likely), depth)
        likely = self._doing.likely = np.zeros_like(self._doing.likely)
        for each in found:
            likely[each.row] = max(likely[each.row], each.gain)
        touched: set[int] = set()
        done = failed = 0
        best = 0.0
        for each in sorted(found, key=lambda compound: compound.rank):
            ratio = each.gain / each.moves
            if done and ratio < _ROUND_RATIO * best:
                break
            if each.row in touched:
                continue
            rows = self._doing.do(each)
            failed = 0 if rows else failed + 1
            if rows:
                touched |= rows
                done += 1
                best = max(best, ratio)
            elif failed == _PATIENCE:
                break
        return done
