"""The free capacity as no request changes it, with what is kept about it between questions: room, scores seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.capacity import Capacity
from gpuwatch.fit.columns import BoolArray, Columns, IntArray
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import INFEASIBLE
from gpuwatch.placement.policy import ANY_DEVICE, Policy, PolicyContext, make_policy, score_key

_KEPT = 64  # shapes whose scores are kept; the next one starts over


@dataclass(frozen=True, slots=True)
class Scores:
    """What a policy makes of one shape on every node."""

    score: IntArray  # (N,) INFEASIBLE where devices or CPU lack
    device: IntArray  # (N,) the device to share, or ANY_DEVICE


class Frozen:
    """`columns`, which must not change any more. Safe to ask from several threads.

    devices (N, W): those that may take work at all; None: every usable one.
    """

    def __init__(self, columns: Columns, table: MixTable, devices: BoolArray | None = None) -> None:
        self.columns = columns if devices is None else columns.only(devices)
        self.table = table
        self.capacity = Capacity(self.columns, devices)
        self.node_room: IntArray = columns.left.sum(axis=1)  # (N,) milligpu left on each node
        self._policies: dict[str, Policy] = {}
        self._scores: dict[tuple[object, ...], Scores] = {}

    def policy(self, name: str) -> Policy:
        """The policy, told once that nothing here changes; an unknown one is a SettingsError."""
        found = self._policies.get(name)
        if found is None:
            found = make_policy(name, PolicyContext(mix=self.table))
            found.freeze(self.columns)
            self._policies[name] = found
        return found

    def scores(self, policy: str, shape: DemandShape) -> Scores:
        """The scores of one member of `shape` on every node that has the devices and the CPU."""
        key = (policy, *score_key(self.policy(policy), shape))
        found = self._scores.get(key)
        if found is None:
            found = self._ranked(self.policy(policy), shape)
            if len(self._scores) >= _KEPT:
                self._scores.clear()
            self._scores[key] = found
        return found

    def _ranked(self, policy: Policy, shape: DemandShape) -> Scores:
        columns = self.columns
        score = np.full(len(columns.names), INFEASIBLE)
        device = np.full(len(columns.names), ANY_DEVICE)
        rows = np.flatnonzero(
            columns.open & (columns.cpu_free >= shape.cpu_millicores) & (self.capacity.device_room(shape) > 0)
        )
        if len(rows):
            ranking = policy.rank(columns, shape, rows, 0)
            score[rows], device[rows] = ranking.score, ranking.device
        return Scores(score, device)
