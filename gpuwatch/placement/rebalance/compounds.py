"""What could be done to one node: one, two, three or many of its pieces leave it or change their device on it.

The worth of every such compound is estimated, for all nodes at once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.rebalance.asks import States
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground
from gpuwatch.placement.rebalance.openings import Opening, Openings

DEPTH = 3  # pieces of a compound; one depth more stands for many that leave together
_MANY = 16  # pieces that may leave a node together
_LAST = 2**20
_MOST_OPTIONS = (0, 10_000, 16, 9, 10_000)  # options of one node that compounds of that depth are made of


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
class Compounds:
    """Makes the compounds of a ground. least_gain: value below which one move is not worth it."""

    ground: Ground
    least_gain: int
    _besides: dict[tuple[int, bytes], list[int]] = field(default_factory=dict)

    def found(self, openings: Openings, depth: int) -> list[Compound]:
        """Those of `depth` pieces that seem worth their moves, in no order."""
        made: list[tuple[int, tuple[Option, ...]]] = []
        for row in range(len(self.ground.here)):
            options = self._options(row, openings)
            if depth > 1:
                options.sort(key=lambda option: (option.moves, option.loss, option.to is None))
            if depth > DEPTH:
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
        return [tuple(leaving[at] for at in order[:count]) for count in range(DEPTH + 1, min(len(order), _MANY) + 1)]

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
