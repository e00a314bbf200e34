"""A fast choice for large questions: the least harmful kind of device first, the fullest use first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import BoolArray, IntArray
from gpuwatch.placement.mig.classes import Choice, Problem
from gpuwatch.placement.mig.options import Counts


def greedy_choice(problem: Problem, start: Iterable[tuple[int, int, int]] = ()) -> Choice:
    """Takes, again and again, the option that meets most of what is left at the lowest harm.

    `start`: (class, option, devices) to begin with, as far as they meet anything.
    """
    state = _State(problem)
    for c, o, devices in start:
        state.take_some(c, o, devices)
    for harm in sorted({group.harm for group in problem.classes}):
        allowed = np.array([problem.classes[c].harm == harm for c, _ in state.pairs], dtype=np.bool_)
        while (best := state.best(allowed)) is not None:
            state.take(*best)
    return state.chosen


@dataclass(slots=True)
class _State:
    """All options of all classes as rows, and what is left of devices and asks."""

    problem: Problem
    pairs: list[tuple[int, int]] = field(init=False)  # class, option
    chosen: Choice = field(init=False)
    _group: IntArray = field(init=False)  # (rows,) class
    _serves: IntArray = field(init=False)  # (rows, profiles)
    _takes: IntArray = field(init=False)  # (classes, asks) 1 where a class may serve
    _cost: list[tuple[int, ...]] = field(init=False)
    _free: IntArray = field(init=False)  # (classes,) devices
    _left: IntArray = field(init=False)  # (asks,) instances
    _narrow: list[int] = field(init=False)  # asks, those with the fewest places first

    def __post_init__(self) -> None:
        classes, asks = self.problem.classes, self.problem.asks
        self.pairs = [(c, o) for c, group in enumerate(classes) for o in range(len(group.options))]
        self.chosen = Choice.none(self.problem)
        self._group = np.array([c for c, _ in self.pairs], dtype=np.int64)
        rows = [classes[c].options[o].serves for c, o in self.pairs]
        self._serves = np.array(rows, dtype=np.int64).reshape(len(rows), len(self.problem.profiles))
        self._takes = np.array([group.takes for group in classes], dtype=np.int64).reshape(len(classes), len(asks))
        self._cost = [classes[c].options[o].cost() for c, o in self.pairs]
        self._free = np.array([len(group.devices) for group in classes], dtype=np.int64)
        self._left = np.array([ask.count for ask in asks], dtype=np.int64)
        places = self._takes.sum(axis=0)
        self._narrow = sorted(range(len(asks)), key=lambda a: (int(places[a]), a))

    def best(self, allowed: BoolArray) -> tuple[int, int] | None:
        """(class, option) that meets most, with the least that nobody asks for, at the lowest cost; None when nothing
        among the `allowed` rows meets anything."""
        if not self.pairs:
            return None
        asked = self._takes @ self._by_profile()
        given = np.minimum(self._serves, asked[self._group])
        worth = given @ np.array(self.problem.weights, dtype=np.int64)
        worth = np.where(allowed & (self._free[self._group] > 0), worth, 0)
        most = int(worth.max())
        if most <= 0:
            return None
        spare = (self._serves - given).sum(axis=1)
        tied = np.flatnonzero(worth == most)
        return self.pairs[min(tied, key=lambda at: (spare[at], self._cost[at], at))]

    def take_some(self, c: int, o: int, devices: int) -> None:
        """Makes up to `devices` of a class that, while each meets something."""
        while devices > 0 and (taken := self.take(c, o, devices)):
            devices -= taken

    def take(self, c: int, o: int, most: int | None = None) -> int:
        """Makes as many devices of a class that, at once, as each give just as much; how many those are."""
        given = self._served(c, self.problem.classes[c].options[o].serves)
        if not any(given):
            return 0
        room = int(self._free[c]) if most is None else min(most, int(self._free[c]))
        times = min([room, *(int(self._left[a]) // n for a, n in enumerate(given) if n)])
        self.chosen.counts[c][o] += times
        self._free[c] -= times
        for a, amount in enumerate(given):
            self._left[a] -= times * amount
            self.chosen.meets[a][c] += times * amount
        return times

    def _served(self, c: int, serves: Counts) -> list[int]:
        """What each ask gets of one device, those first that have the fewest other places."""
        supply = dict(zip(self.problem.profiles, serves, strict=True))
        given = [0] * len(self.problem.asks)
        for a in self._narrow:
            profile = self.problem.asks[a].profile
            if self._takes[c, a]:
                given[a] = min(int(self._left[a]), supply[profile])
                supply[profile] -= given[a]
        return given

    def _by_profile(self) -> IntArray:
        """(asks, profiles) what is left, in the column of its profile."""
        out = np.zeros((len(self.problem.asks), len(self.problem.profiles)), dtype=np.int64)
        for a, ask in enumerate(self.problem.asks):
            out[a, self.problem.profiles.index(ask.profile)] = self._left[a]
        return out
