"""What waits and would start in the room that a node state leaves: greedy, on many states at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.rebalance.asks import Access, Ask, States, fitting, spot, tightest

Start = tuple[int, tuple[int, ...]]  # position in `asks`, devices


class Queue:
    """What waits, by ask; `supply` (A,) says how many of each are still waiting.

    Two orders are tried, since either alone is beaten: the largest first, and the least CPU per GPU first. CPU is what
    runs out first where GPUs are stranded.
    """

    def __init__(self, access: Access, asks: Sequence[Ask], supply: Sequence[int]) -> None:
        self.asks = tuple(asks)
        self.supply = list(supply)
        self._access = access
        self.orders = (
            sorted(range(len(asks)), key=lambda at: (-asks[at].milligpu, asks[at].cpu, asks[at].memory, at)),
            sorted(range(len(asks)), key=lambda at: (asks[at].cpu / asks[at].milligpu, -asks[at].milligpu, at)),
        )

    def worth(self, states: States) -> tuple[IntArray, States]:
        """(R,) milligpu that would start in each state, by the better order, and the states after that."""
        best = np.zeros(len(states), dtype=np.int64)
        after = states.copy()
        for order in self.orders:
            trial = states.copy()
            started = self._run(trial, order)
            better = started > best
            best[better] = started[better]
            for mine, theirs in ((after.cpu, trial.cpu), (after.memory, trial.memory), (after.left, trial.left)):
                mine[better] = theirs[better]
        return best, after

    def starts(self, states: States) -> list[Start]:
        """What would start in the one state given, in order, by the better order."""
        found = [self._list(states, order) for order in self.orders]
        return max(found, key=self._sum)  # the first of equals

    def _sum(self, starts: list[Start]) -> int:
        return sum(self.asks[at].milligpu for at, _ in starts)

    def _run(self, states: States, order: list[int]) -> IntArray:
        started = np.zeros(len(states), dtype=np.int64)
        for which in order:
            ask, left = self.asks[which], self.supply[which]
            at = fitting(self._access, ask, states) if left else np.zeros(0, dtype=np.int64)
            while len(at) and left:
                self._take(states, ask, at)
                started[at] += ask.milligpu
                left -= 1
                at = fitting(self._access, ask, states, at)
        return started

    def _take(self, states: States, ask: Ask, at: IntArray) -> None:
        states.cpu[at] -= ask.cpu
        states.memory[at] -= ask.memory
        if ask.gpus == 1:
            states.left[at, tightest(self._access, ask, states, at)] -= ask.share
            return
        for each in at:
            states.left[each, list(spot(self._access, ask, states, int(each)))] -= ask.share

    def _list(self, states: States, order: list[int]) -> list[Start]:
        """_run() for one state, in plain numbers: most asks are out of the question at a glance."""
        row, cpu, memory = int(states.row[0]), int(states.cpu[0]), int(states.memory[0])
        room: list[int] = states.left[0].tolist()
        out: list[Start] = []
        for which in order:
            ask = self.asks[which]
            left = self.supply[which]
            while left and ask.cpu <= cpu and ask.memory <= memory and ask.share <= max(room):
                fits = self._access.devices(ask)[row]
                fullest = sorted((free, at) for at, free in enumerate(room) if free >= ask.share and fits[at])
                if len(fullest) < ask.gpus:
                    break
                devices = tuple(sorted(at for _, at in fullest[: ask.gpus]))
                for device in devices:
                    room[device] -= ask.share
                cpu, memory, left = cpu - ask.cpu, memory - ask.memory, left - 1
                out.append((which, devices))
        return out
