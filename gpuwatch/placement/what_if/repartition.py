"""What cutting devices anew would give a MIG request: for the causes and the nearest fix, not a plan."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gpuwatch.fit.booking import BookedNode, Booking
from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.mig import Taken, arrangements, creatable, geometry_of, idle_instances, taken_by
from gpuwatch.model.catalogue import MigGeometry, MigProfile
from gpuwatch.model.cluster import Gpu
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

_KEPT = 8  # profiles whose counts are kept


class Repartition:
    """Devices of a booking by how many instances of a profile they could give; nothing that is held is touched."""

    def __init__(self, booking: Booking, columns: Columns) -> None:
        self._booking = booking
        self._columns = columns
        self._cut = [
            (row, at, booked)
            for row, booked in enumerate(booking.nodes.values())
            for at, gpu in enumerate(booked.node.gpus)
            if gpu.mig_enabled
        ]
        self._counts: dict[str, IntArray] = {}

    def instances(self, shape: DemandShape) -> IntArray:
        """(N,) instances of the shape's profile that its accepted models could give: those free now, or more after
        deleting idle ones."""
        profile = shape.mig_profile or ""
        found = self._counts.get(profile)
        if found is None:
            found = self._counted(profile)
            if len(self._counts) >= _KEPT:
                self._counts.clear()
            self._counts[profile] = found
        return self._accepted(found, shape)

    def after_switching(self, shape: DemandShape) -> IntArray:
        """(N,) the same with the wholly free devices that are not in MIG mode yet."""
        cuts, cut_of = self._switchable
        each = np.array([_on_empty(cut, shape.mig_profile or "") for cut in cuts] + [0], dtype=np.int64)
        return self.instances(shape) + self._accepted(each[cut_of], shape)

    def _accepted(self, found: IntArray, shape: DemandShape) -> IntArray:
        if shape.gpu_models:
            codes = [at for at, name in enumerate(self._columns.models) if name in shape.gpu_models]
            found = np.where(np.isin(self._columns.model, codes), found, 0)
        total: IntArray = found.sum(axis=1)
        return total

    def _counted(self, profile: str) -> IntArray:
        found = self._columns.free_instances(profile, ()).copy()
        for row, at, booked in self._cut:
            found[row, at] = max(int(found[row, at]), _most(booked, at, profile))
        return found

    @cached_property
    def _switchable(self) -> tuple[list[MigGeometry | None], IntArray]:
        """(ways to cut, (N, W) position there of each device that is wholly free and not in MIG mode, -1 else)."""
        free = self._columns.usable & (self._columns.left == MILLI)
        nodes = list(self._booking.nodes.values())
        known: dict[tuple[str | None, int | None], int] = {}
        cuts: list[MigGeometry | None] = []
        cut_of = np.full(free.shape, -1, dtype=np.int64)
        for row, at in zip(*(found.tolist() for found in np.nonzero(free)), strict=True):
            gpu: Gpu = nodes[row].node.gpus[at]
            if nodes[row].holds[at] or gpu.replicas > 1:
                continue
            kind = gpu.model, gpu.memory_total_bytes
            if kind not in known:
                known[kind] = len(cuts)
                cuts.append(geometry_of(gpu))
            cut_of[row, at] = known[kind]
        return cuts, cut_of


def _on_empty(geometry: MigGeometry | None, profile: str) -> int:
    wanted = geometry.profile(profile) if geometry else None
    return 0 if geometry is None or wanted is None else _filled(geometry, wanted, Taken(), wanted.placements)


def _most(booked: BookedNode, at: int, profile: str) -> int:
    """Instances of `profile` that device `at` could hold beside those that somebody holds."""
    starts = creatable(booked, at, profile)
    gpu = booked.node.gpus[at]
    geometry = geometry_of(gpu)
    wanted = geometry.profile(profile) if geometry else None
    if not starts or geometry is None or wanted is None:
        return 0
    idle = {each.id for each in idle_instances(booked, at)}
    layouts = arrangements(geometry, [each for each in gpu.mig_instances if each.id not in idle])
    if len(layouts) != 1:
        return 1  # nobody says where the held ones lie: one is sure, more are a guess
    return _filled(geometry, wanted, taken_by(geometry, layouts[0]) or Taken(), starts)


def _filled(geometry: MigGeometry, wanted: MigProfile, taken: Taken, starts: tuple[int, ...]) -> int:
    """How many of `wanted` go beside what is taken, placed from the left."""
    count = 0
    for start in starts:
        if taken.fits(geometry, wanted, start):
            taken, count = taken.plus(wanted, start), count + 1
    return count
