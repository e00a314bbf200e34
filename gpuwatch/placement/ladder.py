"""Where the members of a gang go one after the other: the first, second, third ... on each of a few nodes.

Equal members and a policy that looks at one node at a time make the n-th member on a node the same whatever happened
elsewhere, so that a gang is placed by always taking the best next step among the nodes, and all nodes climb at once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, IntArray
from gpuwatch.fit.fleet_fit import first_devices, fits, roomy_devices
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.ground import INFEASIBLE, Scores
from gpuwatch.placement.placer import Spot
from gpuwatch.placement.policy import ANY_DEVICE, Policy


@dataclass(frozen=True, slots=True)
class _Step:
    score: IntArray  # (T,) INFEASIBLE where no further member fits
    device: IntArray  # (T,)
    devices: list[tuple[int, ...]]  # of the next member, () where none fits


class Ladder:
    """The steps on the nodes `rows` (T,); `first` are the scores of the first member there.

    place (T,): nodes of a lower one are taken before all others, whatever the policy says.
    """

    def __init__(
        self, columns: Columns, policy: Policy, shape: DemandShape, rows: IntArray, first: Scores, place: IntArray
    ) -> None:
        self._rows = rows
        self._shape = shape
        self._policy = policy
        self._place = place
        self._part = columns.part(rows)  # as it stands after the last step
        self._steps = [self._step(first.score, first.device)]

    def gang(self, start: int, members: int, within: IntArray) -> list[Spot]:
        """The first member on `start`, the others where they are best among `within` (positions in rows); [] when they
        do not all fit. Ties go to the lower row."""
        taken = dict.fromkeys([start, *within.tolist()], 0)
        spots: list[Spot] = []
        heap = [entry for at in taken if at != start and (entry := self._entry(at, 0)) is not None]
        heapq.heapify(heap)
        at = start
        while True:
            step = self._steps[taken[at]]
            spots.append(Spot(row=int(self._rows[at]), shape=self._shape, devices=step.devices[at]))
            if len(spots) == members:
                return spots
            taken[at] += 1
            entry = self._entry(at, taken[at])
            if entry is not None:
                heapq.heappush(heap, entry)
            if not heap:
                return []
            at = heapq.heappop(heap)[-1]

    def _entry(self, at: int, level: int) -> tuple[int, int, int, int] | None:
        while len(self._steps) <= level:
            self._climb()
        score = int(self._steps[level].score[at])
        return None if score == INFEASIBLE else (int(self._place[at]), -score, int(self._rows[at]), at)

    def _climb(self) -> None:
        """Gives every node its next member, and scores the one after."""
        last = self._steps[-1]
        here = np.flatnonzero(last.score != INFEASIBLE)
        if self._shape.mig_profile:
            for at in here:
                self._part.take(int(at), self._shape, last.devices[at])
        else:
            self._part.take_each(here, self._shape, self._mask(last)[here])
        score = np.full(len(self._rows), INFEASIBLE)
        device = np.full(len(self._rows), ANY_DEVICE)
        again = here[fits(self._part, self._shape, here)]
        if len(again):
            ranking = self._policy.rank(self._part, self._shape, again, len(self._steps))
            score[again], device[again] = ranking.score, ranking.device
        self._steps.append(self._step(score, device))

    def _mask(self, step: _Step) -> BoolArray:
        mask = np.zeros(self._part.left.shape, dtype=np.bool_)
        for at, devices in enumerate(step.devices):
            mask[at, list(devices)] = True
        return mask

    def _step(self, score: IntArray, device: IntArray) -> _Step:
        shape, fitting = self._shape, score != INFEASIBLE
        if shape.mig_profile or shape.gpus <= 1:
            found = [
                (() if not ok else (int(which),) if which != ANY_DEVICE else first_devices(self._part, at, shape))
                for at, (ok, which) in enumerate(zip(fitting, device, strict=True))
            ]
            return _Step(score, device, found)
        roomy = roomy_devices(self._part, shape)
        roomy &= (roomy.cumsum(axis=1) <= shape.gpus) & fitting[:, None]
        return _Step(score, device, [tuple(np.flatnonzero(each).tolist()) for each in roomy])
