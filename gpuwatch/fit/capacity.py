"""How often a shape could start on every node, counted once for each share and model and asked many times.

What fleet_fit computes anew for one shape, over all devices, falls apart into what depends on the share alone (how many
shares each node has left on each model) and cheap sums per node. A what-if asks hundreds of shapes of one state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, IntArray, bounded
from gpuwatch.fit.fleet_fit import UNBOUNDED, bounded_beside, members_that_fit
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

_KEPT = 32  # answers kept of each sort; the next one starts over, so that strange requests cannot fill the memory
K = TypeVar("K")


class Capacity:
    """The free capacity of `columns`, which must not change any more. `devices` (N, W) leaves out some; None: none.

    Equal in every answer to fleet_fit on columns without the devices left out. Safe to ask from several threads.
    """

    def __init__(self, columns: Columns, devices: BoolArray | None = None) -> None:
        self.columns = columns
        self._devices = devices
        self._kinds = len(columns.models) + 1  # the last: unknown
        left = columns.left if devices is None else np.where(devices, columns.left, 0)
        free = np.flatnonzero(left.ravel() > 0)
        self._left = left.ravel()[free]
        self._cell = self._cell_of(free)
        self._slots: dict[int, IntArray] = {}
        self._rooms: dict[tuple[object, ...], IntArray] = {}
        self._members: dict[DemandShape, IntArray] = {}

    def members(self, shape: DemandShape) -> IntArray:
        """(N,) how many members of `shape` alone each node could start now; see fleet_fit.members_that_fit."""
        return _kept(self._members, shape, lambda: self.beside(self.device_room(shape), shape))

    def beside(self, room: IntArray, shape: DemandShape, rows: IntArray | slice = slice(None)) -> IntArray:
        """`room` (rows,) of the devices, cut to what the CPU and memory of the nodes `rows` allow."""
        return bounded_beside(self.columns, room, shape, rows)

    def device_room(self, shape: DemandShape) -> IntArray:
        """(N,) members that the devices would do for, whatever CPU and memory say; 0 on nodes that take no work."""
        key = (shape.gpus, shape.milligpu_per_gpu, shape.gpu_models, shape.mig_profile)
        return _kept(self._rooms, key, lambda: np.where(self.columns.open, self._device_room(shape), 0))

    def free_milligpu(self, models: tuple[str, ...]) -> int:
        """Free capacity of all devices of `models` (empty: any)."""
        return int(self._slots_of(1)[self._rows(models)].sum())

    def _device_room(self, shape: DemandShape) -> IntArray:
        if shape.gpus <= 0:
            return np.full(len(self.columns.names), UNBOUNDED, dtype=np.int64)
        if shape.mig_profile:
            instances = self.columns.free_instances(shape.mig_profile, shape.gpu_models)
            if self._devices is not None:
                instances = np.where(self._devices, instances, 0)
            room: IntArray = instances.sum(axis=1) // bounded(shape.gpus)
            return room
        if shape.gpus > 1 and shape.milligpu_per_gpu * 2 <= MILLI:
            return self._shares_of_several(shape)
        slots: IntArray = self._slots_of(max(1, bounded(shape.milligpu_per_gpu)))[self._rows(shape.gpu_models)]
        total: IntArray = slots.sum(axis=0)  # of several devices none gives two shares, so each counts once
        return total // bounded(shape.gpus)

    def _shares_of_several(self, shape: DemandShape) -> IntArray:
        """Several devices, each shared: no sound request, but a mix may hold one."""
        bare = DemandShape(gpus=shape.gpus, milligpu_per_gpu=shape.milligpu_per_gpu, gpu_models=shape.gpu_models)
        left = self.columns.left if self._devices is None else np.where(self._devices, self.columns.left, 0)
        return members_that_fit(replace(self.columns, left=left), bare)

    def _slots_of(self, share: int) -> IntArray:
        """(models + 1, N) shares of that size left on the devices of each model."""
        return _kept(self._slots, share, lambda: self._counted(share))

    def _counted(self, share: int) -> IntArray:
        nodes = len(self.columns.names)
        slots = np.bincount(self._cell, weights=self._left // share, minlength=self._kinds * nodes)
        counted: IntArray = slots.astype(np.int64).reshape(self._kinds, nodes)
        return counted

    def _rows(self, models: tuple[str, ...]) -> list[int]:
        if not models:
            return list(range(self._kinds))
        return [at for at, name in enumerate(self.columns.models) if name in models]

    def _cell_of(self, flat: IntArray) -> IntArray:
        """Position in (models + 1, N) of each device, given by its position in (N, W)."""
        nodes, width = self.columns.left.shape
        model = self.columns.model.ravel()[flat]
        cell: IntArray = np.where(model < 0, self._kinds - 1, model) * nodes + flat // width
        return cell


def _kept(store: dict[K, IntArray], key: K, compute: Callable[[], IntArray]) -> IntArray:
    found = store.get(key)
    if found is None:
        found = compute()
        if len(store) >= _KEPT:
            store.clear()
        store[key] = found
    return found
