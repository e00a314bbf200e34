"""Where the members of a gang go one after the other: the first, second, third ... on each of a few nodes.

Equal members and a policy that looks at one node at a time make the n-th member on a node the same whatever happened
elsewhere, so that a gang is placed by always taking the best next step among the nodes, and all nodes climb at once.
"""

from __future__ import annotations

import heapq

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import fits, roomy_devices
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import INFEASIBLE
from gpuwatch.placement.placer import Spot
from gpuwatch.placement.policy import ANY_DEVICE, Policy
from gpuwatch.placement.what_if.frozen import Scores

_TOGETHER = 64  # members on one node up to which all nodes climb at once; beyond, only those that are climbed on

Step = tuple[int, IntArray]  # score, INFEASIBLE where no further member fits; (W,) how often each device is taken


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
        self._part = columns.part(rows)  # each node as it stands before the last of its steps
        self._steps: list[list[Step]] = [[] for _ in rows]
        self._add(np.arange(len(rows)), first.score, first.device)

    def gang(self, start: int, members: int, within: IntArray) -> list[Spot]:
        """The first member on `start`, the others where they are best among `within` (positions in rows); [] when they
        do not all fit. Ties go to the lower row."""
        taken = dict.fromkeys([start, *within.tolist()], 0)
        spots: list[Spot] = []
        heap = [entry for at in taken if at != start and (entry := self._entry(at, 0)) is not None]
        heapq.heapify(heap)
        at = start
        while True:
            spots.append(self._spot(at, taken[at]))
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
        steps = self._steps[at]
        if len(steps) == level:
            self._climb(at)
        score = steps[level][0]
        return None if score == INFEASIBLE else (int(self._place[at]), -score, int(self._rows[at]), at)

    def _spot(self, at: int, level: int) -> Spot:
        takes = self._steps[at][level][1]
        devices = np.repeat(np.arange(len(takes)), takes)
        return Spot(row=int(self._rows[at]), shape=self._shape, devices=tuple(devices.tolist()))

    def _climb(self, at: int) -> None:
        """Gives node `at` its next member, and scores the one after; so for all that stand as high."""
        height = len(self._steps[at])
        here = [at]
        if height <= _TOGETHER:
            here = [i for i, steps in enumerate(self._steps) if len(steps) == height and steps[-1][0] != INFEASIBLE]
        rows = np.array(here, dtype=np.int64)
        self._part.take_each(rows, self._shape, np.array([self._steps[i][-1][1] for i in here]))
        score = np.full(len(rows), INFEASIBLE)
        device = np.full(len(rows), ANY_DEVICE)
        again = fits(self._part, self._shape, rows)
        if again.any():
            ranking = self._policy.rank(self._part, self._shape, rows[again], height)
            score[again], device[again] = ranking.score, ranking.device
        self._add(rows, score, device)

    def _add(self, rows: IntArray, score: IntArray, device: IntArray) -> None:
        takes = self._takes(rows, device)
        for at, one, mine in zip(rows.tolist(), score.tolist(), takes, strict=True):
            self._steps[at].append((one, mine))

    def _takes(self, rows: IntArray, device: IntArray) -> IntArray:
        """(R, W) how often the next member takes each device: the one that the policy shares, else the lowest."""
        shape, part = self._shape, self._part
        if shape.mig_profile:
            free = part.free_instances(shape.mig_profile, shape.gpu_models)[rows]
        else:
            free = roomy_devices(part, shape, rows).astype(np.int64)
        lowest = np.minimum(free, (shape.gpus - (free.cumsum(axis=1) - free)).clip(min=0))
        shared = device[:, None] == np.arange(part.left.shape[1])
        takes: IntArray = np.where(device[:, None] == ANY_DEVICE, lowest, shared)
        return takes
