"""Carries a compound out on the ground, and takes it back when it did not keep its promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.rebalance.asks import Ask, fitting, spot
from gpuwatch.placement.rebalance.compounds import Compound, Option
from gpuwatch.placement.rebalance.ground import Ground, Started
from gpuwatch.placement.rebalance.openings import Opening, free_places, without


@dataclass(slots=True)
class Doing:
    """least_gain: value that a move must bring. likely (N,): value each row may still gain, which takes no piece in
    while others would.
    """

    ground: Ground
    least_gain: int
    worth_it: Callable[[int, float], bool]  # (value gained, GPU-hours lost)
    likely: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def do(self, compound: Compound) -> set[int]:
        """Does it; the rows that changed, or none when it was taken back."""
        ground = self.ground
        mark, before, hours = ground.mark(), ground.value(), ground.gpu_hours
        changed = {compound.row}
        for option in sorted(compound.options, key=lambda option: option.to is not None):
            rows = self._out(option) if option.openings else self._beside_now(option)
            if not rows:
                ground.restore(mark)
                return set()
            changed |= rows
        for row in sorted(changed, key=lambda row: (row != compound.row, row)):
            ground.refill(row)
        moves = len(ground.moved) - len(mark.moved)
        gain = ground.value() - before
        if gain < self.least_gain * moves or not self.worth_it(gain, ground.gpu_hours - hours):
            ground.restore(mark)
            return set()
        return changed

    def _beside_now(self, option: Option) -> set[int]:
        ground, piece = self.ground, self.ground.pieces[option.piece]
        if option.to is None or not ground.may_move(option.piece):
            return set()
        if ground.states.left[piece.row, option.to] < piece.ask.share:
            return set()
        ground.move(option.piece, piece.row, (option.to,))
        return {piece.row}

    def _out(self, option: Option) -> set[int]:
        """Moves the piece to the first of its openings that is still there."""
        for opening in option.openings:
            rows = self._through(option.piece, opening)
            if rows:
                return rows
        return self._direct(option.piece, set())

    def _through(self, at: int, opening: Opening) -> set[int]:
        ground, piece = self.ground, self.ground.pieces[at]
        changed: set[int] = set()
        if opening.row in (piece.row, *piece.never_rows):
            return set()
        if opening.instead_of is not None:
            if not ground.holds(opening.instead_of) or not self._fits_after(opening.instead_of, piece.ask):
                return set()
            ground.unstart(opening.instead_of)
        elif opening.after is not None:
            leaver = ground.pieces[opening.after]
            room = without(ground, [(leaver.row, leaver.ask, leaver.gives)])
            if not ground.may_move(opening.after) or not len(fitting(ground.access, piece.ask, room)):
                return set()
            changed = self._direct(opening.after, {piece.row})
            if not changed and opening.way_out is not None and opening.way_out.row != piece.row:
                changed = self._through(opening.after, opening.way_out)
            if not changed:
                return set()
        made = self._to(at, opening.row)
        return changed | made if made else set()

    def _fits_after(self, step: Started, ask: Ask) -> bool:
        room = without(self.ground, [(step.row, self.ground.queue.asks[step.which], step.devices)])
        return len(fitting(self.ground.access, ask, room)) > 0

    def _direct(self, at: int, never: set[int]) -> set[int]:
        """Moves a piece to free room outside `never`."""
        ground, piece = self.ground, self.ground.pieces[at]
        if not ground.may_move(at):
            return set()
        closed = np.zeros(len(ground.states), dtype=np.bool_)
        closed[list({*never, piece.row, *piece.never_rows})] = True
        places = free_places(ground, piece.ask, self.likely, closed)
        return self._to(at, places[0].row) if places else set()

    def _to(self, at: int, row: int) -> set[int]:
        ground, piece = self.ground, self.ground.pieces[at]
        if row == piece.row or row in piece.never_rows or not ground.may_move(at):
            return set()
        state = ground.state(row)
        if not len(fitting(ground.access, piece.ask, state)):
            return set()
        ground.move(at, row, spot(ground.access, piece.ask, state, 0))
        return {piece.row, row}
