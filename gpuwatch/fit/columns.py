"""One columnar view of a booking: what the kernels of the floors above loop over instead of objects."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gpuwatch.fit.booking import BookedNode, Booking, node_block_cause
from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]

# Stands for a capacity that nobody told: it must neither strand nor block. Small enough to be summed over nodes.
ENOUGH = 2**48
_BEYOND = 2 * ENOUGH  # more than any node has
UNKNOWN_MODEL = -1
_KEPT_SETS = 64  # sets of models whose devices are kept; a long-lived view is asked for many
SIZES = 18  # kinds of running members that are counted apart on each node; see size_of


@dataclass(frozen=True, slots=True)
class Columns:
    """N nodes by W devices (W: most devices on one node, at least 1; shorter nodes are padded).

    The arrays cpu_free, memory_free, left, running and mig_free change through take() and give_back(); the rest never
    does.
    """

    names: tuple[str, ...]
    models: tuple[str, ...]  # sorted; `model` holds positions in it
    pools: tuple[str, ...]  # sorted; `pool` holds positions in it
    pool: IntArray  # (N,)
    open: BoolArray  # (N,) the node takes work
    cpu_free: IntArray  # (N,) millicores, ENOUGH where unknown
    cpu_known: BoolArray  # (N,)
    memory_free: IntArray  # (N,) bytes, ENOUGH where unknown
    memory_known: BoolArray  # (N,)
    cpu_capacity: IntArray  # (N,) millicores that work could ever get, ENOUGH where unknown
    memory_capacity: IntArray  # (N,) bytes, ENOUGH where unknown
    running: IntArray  # (N, SIZES) members that hold devices there, by size_of
    left: IntArray  # (N, W) milligpu that can be given away now, 0..1000; 0 on padding and on unusable devices
    model: IntArray  # (N, W) position in `models`; UNKNOWN_MODEL where nobody says, and on padding
    usable: BoolArray  # (N, W) a device that takes time-shared work
    gpu_index: IntArray  # (N, W) the device's own index on its node, -1 on padding
    mig_gpus: int  # devices in MIG mode
    mig_free: dict[str, IntArray]  # profile -> (N, W) created instances that nobody holds and a job could take
    allowed: BoolArray | None = None  # (N, W) the devices that may be taken; None: every usable one
    _accepted: dict[tuple[str, ...], BoolArray] = field(default_factory=dict)

    def copy(self) -> Columns:
        """A view whose free capacity can change without touching this one."""
        return replace(
            self,
            cpu_free=self.cpu_free.copy(),
            memory_free=self.memory_free.copy(),
            left=self.left.copy(),
            running=self.running.copy(),
            mig_free={profile: free.copy() for profile, free in self.mig_free.items()},
        )

    def part(self, rows: IntArray) -> Columns:
        """A view of the nodes `rows` alone, in that order, whose free capacity can change without touching this one."""
        whole = {each.name: getattr(self, each.name) for each in fields(self)}
        cut: dict[str, Any] = {name: each[rows] for name, each in whole.items() if isinstance(each, np.ndarray)}
        names = tuple(self.names[row] for row in rows)
        mig_free = {profile: free[rows] for profile, free in self.mig_free.items()}
        return replace(self, **cut, names=names, mig_free=mig_free, _accepted={})

    def only(self, devices: BoolArray) -> Columns:
        """The same free capacity with work taken by `devices` (N, W) alone."""
        mig_free = {profile: np.where(devices, free, 0) for profile, free in self.mig_free.items()}
        return replace(self, allowed=devices, mig_free=mig_free, _accepted={})

    def accepted(self, models: tuple[str, ...]) -> BoolArray:
        """(N, W) usable devices whose model is among `models`; empty accepts any, an unknown model is no match."""
        found = self._accepted.get(models)
        if found is None:
            found = self.usable if self.allowed is None else self.usable & self.allowed
            found = found & self._of(models) if models else found
            if len(self._accepted) >= _KEPT_SETS:
                self._accepted.clear()
            self._accepted[models] = found
        return found

    def free_instances(self, profile: str, models: tuple[str, ...]) -> IntArray:
        """(N, W) free instances of `profile` on devices whose model is among `models` (empty: any)."""
        free = self.mig_free.get(profile)
        if free is None:
            return np.zeros_like(self.left)
        return np.where(self._of(models), free, 0) if models else free

    def _of(self, models: tuple[str, ...]) -> BoolArray:
        wanted = np.array([*(name in models for name in self.models), False], dtype=np.bool_)  # the last: unknown
        found: BoolArray = wanted[self.model]
        return found

    def take(self, row: int, shape: DemandShape, devices: tuple[int, ...], times: int = 1) -> None:
        """Gives one member of `shape` its resources on node `row`.

        `devices` are columns of `left`, or of `mig_free` for a MIG shape (then one for each instance).
        """
        self.cpu_free[row] -= times * shape.cpu_millicores
        self.memory_free[row] -= times * shape.memory_bytes
        if shape.gpus > 0 and not shape.mig_profile:
            self.running[row, size_of(shape)] += times
        taken_from = self.mig_free[shape.mig_profile] if shape.mig_profile else self.left
        for device in devices:
            taken_from[row, device] -= times * (1 if shape.mig_profile else shape.milligpu_per_gpu)

    def take_each(self, rows: IntArray, shape: DemandShape, devices: IntArray) -> None:
        """take() of one member on each of the nodes `rows` (R,), no node twice; devices: (R, W) how often each."""
        self.cpu_free[rows] -= shape.cpu_millicores
        self.memory_free[rows] -= shape.memory_bytes
        if shape.mig_profile:
            self.mig_free[shape.mig_profile][rows] -= devices
            return
        if shape.gpus > 0:
            self.running[rows, size_of(shape)] += 1
        self.left[rows] -= devices * shape.milligpu_per_gpu

    def give_back(self, row: int, shape: DemandShape, devices: tuple[int, ...]) -> None:
        """Undoes take()."""
        self.take(row, shape, devices, times=-1)


def columns_of(booking: Booking) -> Columns:
    """The columnar view of `booking`, rows in its order."""
    booked = list(booking.nodes.values())
    models = tuple(sorted({gpu.model for b in booked for gpu in b.node.gpus if gpu.model is not None}))
    pools = tuple(sorted({b.node.pool for b in booked}))
    model_code = {name: at for at, name in enumerate(models)}
    pool_code = {name: at for at, name in enumerate(pools)}
    shape = (len(booked), max((len(b.node.gpus) for b in booked), default=0) or 1)
    left = np.zeros(shape, dtype=np.int64)
    usable = np.zeros(shape, dtype=np.bool_)
    model = np.full(shape, UNKNOWN_MODEL, dtype=np.int64)
    gpu_index = np.full(shape, -1, dtype=np.int64)
    for row, b in enumerate(booked):
        count = len(b.node.gpus)
        left[row, :count] = b.free_milligpu
        usable[row, :count] = b.usable
        model[row, :count] = [model_code.get(gpu.model or "", UNKNOWN_MODEL) for gpu in b.node.gpus]
        gpu_index[row, :count] = [gpu.index for gpu in b.node.gpus]
    return Columns(
        names=tuple(b.node.name for b in booked),
        models=models,
        pools=pools,
        pool=np.array([pool_code[b.node.pool] for b in booked], dtype=np.int64),
        open=np.array([node_block_cause(b.node) is None for b in booked], dtype=np.bool_),
        cpu_free=_capacity([b.cpu_free_millicores for b in booked]),
        cpu_known=np.array([b.cpu_free_millicores is not None for b in booked], dtype=np.bool_),
        memory_free=_capacity([b.memory_free_bytes for b in booked]),
        memory_known=np.array([b.memory_free_bytes is not None for b in booked], dtype=np.bool_),
        cpu_capacity=_capacity([b.node.cpu_allocatable_millicores for b in booked]),
        memory_capacity=_capacity([b.node.memory_allocatable_bytes for b in booked]),
        running=_running(booked),
        left=left.clip(0, MILLI),
        model=model,
        usable=usable,
        gpu_index=gpu_index,
        mig_gpus=sum(gpu.mig_enabled for b in booked for gpu in b.node.gpus),
        mig_free=_mig_free(booked, shape),
    )


def size_of(shape: DemandShape) -> int:
    """The column of `running` that a member of `shape` counts in: 0 part of a device, 1.. whole devices, then more."""
    if shape.gpus == 1 and shape.milligpu_per_gpu < MILLI:
        return 0
    return min(shape.gpus, SIZES - 1)


def _running(booked: list[BookedNode]) -> IntArray:
    counts = np.zeros((len(booked), SIZES), dtype=np.int64)
    for row, b in enumerate(booked):
        members = {id(hold.member): hold for holds in b.holds for hold in holds if hold.mig_instance is None}
        for hold in members.values():
            counts[row, size_of(hold.job.shape)] += 1
    return counts


def _mig_free(booked: list[BookedNode], size: tuple[int, int]) -> dict[str, IntArray]:
    profiles = {i.profile for b in booked for gpu in b.node.gpus for i in gpu.mig_instances}
    free = {profile: np.zeros(size, dtype=np.int64) for profile in sorted(profiles)}
    for row, b in enumerate(booked):
        for at, gpu in enumerate(b.node.gpus):
            if gpu.mig_instances and _gives_instances(b.node, gpu):
                held = {hold.mig_instance for hold in b.holds[at]}
                for instance in gpu.mig_instances:
                    free[instance.profile][row, at] += instance.id not in held
    return free


def _gives_instances(node: Node, gpu: Gpu) -> bool:
    return gpu.mig_enabled and gpu.health != "unhealthy" and node_block_cause(node) is None


def bounded(amount: int) -> int:
    """`amount` within what 64 bits can add up: a hand-written snapshot may hold any whole number."""
    return max(-_BEYOND, min(amount, _BEYOND))


def _capacity(amounts: list[int | None]) -> IntArray:
    return np.array([ENOUGH if amount is None else min(bounded(amount), ENOUGH) for amount in amounts], dtype=np.int64)
