"""What a placement policy is: a score for each node that could take one member, and which device it would share.

A policy sees arrays and decides nothing else: feasibility, ties, gangs and the order of arrival are the placer's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.model.jobs import DemandShape
from gpuwatch.registry import Registry

ANY_DEVICE = -1  # the placer takes the lowest devices with room


@dataclass(frozen=True, slots=True)
class Ranking:
    """Parallel to the rows asked about. Higher scores win; equal scores are left to the placer's order."""

    score: IntArray
    device: IntArray  # column of the device to share, or ANY_DEVICE


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What a policy may know besides the state: the demand mix, and the one source of chance."""

    mix: MixTable
    rng: random.Random


class Policy(Protocol):
    """One policy during one run."""

    local: bool  # True: a node's score depends on that node alone, so the placer may keep it until the node changes

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray) -> Ranking:
        """Scores the nodes `rows`, each of which has the devices and the CPU for one member of `shape`."""
        ...

    def placed(self, row: int, shape: DemandShape) -> None:
        """Told after each placement, for policies that remember what runs where."""
        ...


PolicyFactory = Callable[[PolicyContext], Policy]

POLICIES: Registry[PolicyFactory] = Registry("placement policy", "gpuwatch.placement.policies")


def shares_one_device(shape: DemandShape) -> bool:
    """Whether the policy has a device to choose: one device, in part or whole, and no MIG instance."""
    return shape.gpus == 1 and not shape.mig_profile


def tightest_device(columns: Columns, shape: DemandShape, rows: IntArray) -> IntArray:
    """(rows,) the device with room that has the least left, lowest first on ties; ANY_DEVICE where none is shared."""
    if not shares_one_device(shape):
        return np.full(len(rows), ANY_DEVICE, dtype=np.int64)
    left = np.where(roomy_devices(columns, shape, rows), columns.left[rows], np.iinfo(np.int64).max)
    tightest: IntArray = left.argmin(axis=1)
    return tightest
