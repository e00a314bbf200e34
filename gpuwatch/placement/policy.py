"""What a placement policy is: a score for each node that could take one member, and which device it would share.

A policy sees arrays and decides nothing else: feasibility, ties, gangs and the order of arrival are the placer's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpuwatch.errors import RegistryError, SettingsError
from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.model.jobs import DemandShape
from gpuwatch.registry import Registry

Kernel = Callable[..., tuple[int, int]]

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
    seed: int = 0


class Policy(ABC):
    """One policy during one run."""

    local: ClassVar[bool] = True  # a node's score depends on that node alone, so that it may be kept until it changes
    random_ties: ClassVar[bool] = False  # equal scores are decided by chance, not by the order of nodes
    reads_memory: ClassVar[bool] = False  # scores depend on host memory; else shapes that differ in it share them
    holds: ClassVar[bool] = False  # some nodes are held back from some shapes, see held(); depends on all nodes
    tables: tuple[Any, ...] = ()  # arrays that the kernel reads

    @abstractmethod
    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray, draw: int) -> Ranking:
        """Scores the nodes `rows`, each of which has the devices and the CPU for one member of `shape`.

        `draw` counts the placements so far: with the seed and the row it is what chance may depend on.
        """

    def freeze(self, columns: Columns) -> None:  # noqa: B027  nothing to keep is a choice
        """Told that `columns` will not change any more, so that what no shape changes may be kept for rank()."""

    def held(self, columns: Columns, shape: DemandShape) -> IntArray:
        """(N,) how far each node is held back from `shape` now: TAKE, LAST or deeper, or NEVER of kernels/counts.py."""
        del shape
        return np.zeros(len(columns.names), dtype=np.int64)

    def kernel(self) -> Kernel | None:
        """The scalar form of rank() for replays, giving the same: plain code that numba can compile, or None.

        Called as kernel(state, mix, ask, row, draw, seed, tables) -> (score, device) with the values of
        kernels/arrays.py. It allocates nothing. Of a policy that holds nodes back it is called with row HOLD before
        each choice, and then fills state.holding.level as held() does.
        """
        return None


PolicyFactory = Callable[[PolicyContext], Policy]

POLICIES: Registry[PolicyFactory] = Registry("placement policy", "gpuwatch.placement.policies")


def make_policy(name: str, context: PolicyContext) -> Policy:
    """The policy called `name`; an unknown one is a SettingsError that lists the known ones."""
    try:
        return POLICIES.get(name)(context)
    except RegistryError as err:
        raise SettingsError(err.what, todo=err.todo, code="unknown_policy") from err


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


def score_key(policy: Policy, shape: DemandShape) -> tuple[object, ...]:
    """Shapes with equal keys have equal scores under `policy`."""
    memory = shape.memory_bytes if policy.reads_memory else 0
    share = shape.milligpu_per_gpu if shape.gpus else 0  # means nothing without a device
    return shape.gpus, share, shape.cpu_millicores, shape.gpu_models, shape.mig_profile, memory
