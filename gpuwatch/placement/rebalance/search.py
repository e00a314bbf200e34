"""Local search: the compound of moves with the highest gain a move, again and again, until none is worth it.

A compound takes one, two or three pieces off a node (or to another device of it), and what waits fills the room. Its
worth is estimated for all nodes at once; then it is done, measured, and taken back when it did not keep its promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.rebalance.asks import Ask, States, fitting, spot
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground, Started
from gpuwatch.placement.rebalance.openings import Opening, Openings, free_places, without

_DEPTH = 3
_MANY = 16  # pieces that may leave a node together
_LAST = 2**20
_PATIENCE = 120  # compounds in a row that did not keep their promise: the estimates of this round are used up
_MOST_OPTIONS = (0, 10_000, 16, 9, 10_000)  # options of one node that compounds of that depth are made of
_ROUND_RATIO = 0.3  # a round goes on down to this part of its best compound's gain a move


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that could be done to a node: a piece leaves it, or goes to its other device `to`."""

    piece: int
    to: int | None = None
    openings: tuple[Opening, ...] = ()  # places elsewhere, the cheapest first

    @property
    def opening(self) -> Opening | None:
        """The place that it is judged by."""
        return self.openings[0] if self.openings else None

    @property
    def loss(self) -> int:
        """Value given up where it goes."""
        return self.opening.loss if self.opening else 0

    @property
    def moves(self) -> int:
        """With those that make its room."""
        return 1 + (self.opening.moves if self.opening else 0)


@dataclass(frozen=True, slots=True)
class Compound:
    """Options of one node, done together; estimated."""

    row: int
    options: tuple[Option, ...]
    gain: int
    moves: int
    cost: int  # classes of its pieces, added up

    @property
    def rank(self) -> tuple[float, int, int, int, tuple[int, ...]]:
        """Best first: gain a move, then gain, then cost; ties by place, which is by name."""
        pieces = tuple(option.piece for option in self.options)
        return -self.gain / self.moves, -self.gain, self.cost, self.row, pieces


@dataclass(slots=True)
class Search:
    """One search on `ground`. least_gain: value below which one move is not worth it."""

    ground: Ground
    least_gain: int
    worth_it: Callable[[int, float], bool]  # (value gained, GPU-hours lost)
    progress: Callable[[int], None]
    likely: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _besides: dict[tuple[int, bytes], list[int]] = field(default_factory=dict)

    def run(self) -> None:
        """Until no compound of any depth is worth its moves."""
        self.likely = np.zeros(len(self.ground.states), dtype=np.int64)
        for row in self._rows_that_start():
            self.ground.refill(row)
        depth = 1
        while depth <= _DEPTH + 1 and len(self.ground.moved) < self.ground.budget.moves:
            if self._round(depth):
                depth = 1
            else:
                depth += 1
            self.progress(len(self.ground.moved))

    def _rows_that_start(self) -> list[int]:
        worth, _ = self.ground.queue.worth(self.ground.states)
        rows = np.flatnonzero(worth)
        return [int(row) for row in rows[np.argsort(-worth[rows], kind="stable")]]

    def _round(self, depth: int) -> int:
        openings = Openings(self.ground, self.likely)
        found = self._compounds(openings, depth)
        self.likely = np.zeros_like(self.likely)
        for each in found:
            self.likely[each.row] = max(self.likely[each.row], each.gain)
        touched: set[int] = set()
        done = failed = 0
        best = 0.0
        for each in sorted(found, key=lambda compound: compound.rank):
            ratio = each.gain / each.moves
            if done and ratio < _ROUND_RATIO * best:
                break
            if each.row in touched:
                continue
            rows = self._do(each)
            failed = 0 if rows else failed + 1
            if rows:
                touched |= rows
                done += 1
                best = max(best, ratio)
            elif failed == _PATIENCE:
                break
        return done

    def _compounds(self, openings: Openings, depth: int) -> list[Compound]:
        made: list[tuple[int, tuple[Option, ...]]] = []
        for row in range(len(self.ground.here)):
            options = self._options(row, openings)
            if depth > 1:
                options.sort(key=lambda option: (option.moves, option.loss, option.to is None))
            if depth > _DEPTH:
                made += [(row, many) for many in self._many(row, options)]
                continue
            together = combinations(options[: _MOST_OPTIONS[depth]], depth)
            made += [(row, many) for many in together if len({option.piece for option in many}) == depth]
        return self._measured(made) if made else []

    def _many(self, row: int, options: list[Option]) -> list[tuple[Option, ...]]:
        """Four pieces and more that leave together, those first whose devices hold least: whole devices come free."""
        leaving = {option.piece: option for option in options if option.openings}
        load: dict[int, int] = defaultdict(int)
        for at in leaving:
            for device in self.ground.pieces[at].devices:
                load[device] += self.ground.pieces[at].ask.share
        pieces = self.ground.pieces
        order = sorted(leaving, key=lambda at: ([(load[d], d) for d in pieces[at].devices] or [(_LAST, 0)], at))
        return [tuple(leaving[at] for at in order[:count]) for count in range(_DEPTH + 1, min(len(order), _MANY) + 1)]

    def _options(self, row: int, openings: Openings) -> list[Option]:
        out: list[Option] = []
        ground = self.ground
        for at in ground.here[row]:
            if not ground.may_move(at):
                continue
            piece = ground.pieces[at]
            found = tuple(each for each in openings.known(ground.kind_of[at]) if each.row != row)
            if found:
                out.append(Option(at, openings=found))
            if piece.ask.gpus == 1 and piece.gives:
                out += [Option(at, to=device) for device in self._beside(at)]
        return out

    def _beside(self, at: int) -> list[int]:
        """Other devices of its node that could take the piece, one of each amount left; known while these stay."""
        left = self.ground.states.left[self.ground.pieces[at].row]
        key = at, left.tobytes()
        if key not in self._besides:
            self._besides[key] = self._find_beside(at, left)
        return self._besides[key]

    def _find_beside(self, at: int, left: IntArray) -> list[int]:
        piece = self.ground.pieces[at]
        fits = (left >= piece.ask.share) & self.ground.access.devices(piece.ask)[piece.row]
        fits[list(piece.devices)] = False
        by_left = {int(left[device]): int(device) for device in np.flatnonzero(fits)[::-1]}
        # Where it would leave as much as it leaves behind, nothing changes.
        behind = int(left[piece.devices[0]])
        return [device for amount, device in sorted(by_left.items()) if amount - piece.ask.share != behind]

    def _measured(self, made: list[tuple[int, tuple[Option, ...]]]) -> list[Compound]:
        ground = self.ground
        row = np.array([each[0] for each in made])
        states = States(row, ground.states.cpu[row], ground.states.memory[row], ground.states.left[row])
        cost = np.zeros(len(made), dtype=np.int64)
        for at, (_, options) in enumerate(made):
            for option in options:
                piece = ground.pieces[option.piece]
                if option.to is None:
                    states.cpu[at] += piece.ask.cpu
                    states.memory[at] += piece.ask.memory
                    cost[at] += option.loss
                else:
                    states.left[at, option.to] -= piece.ask.share
                if piece.gives:
                    states.left[at, list(piece.gives)] += piece.ask.share
        started, after = ground.queue.worth(states)
        gain = WAITING_WEIGHT * started + ground.usable_in(after) - ground.usable[row] - cost
        sound = (states.left >= 0).all(axis=1)
        out = []
        for at in np.flatnonzero(sound & (gain > 0)).tolist():
            moves = sum(option.moves for option in made[at][1])
            if gain[at] >= self.least_gain * moves:
                price = sum(ground.pieces[option.piece].cost_class for option in made[at][1])
                out.append(Compound(made[at][0], made[at][1], int(gain[at]), moves, price))
        return out

    def _do(self, compound: Compound) -> set[int]:
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
