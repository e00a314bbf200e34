"""What cutting idle slices anew would give a MIG request: for the causes and the nearest fix, not a plan."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.booking import BookedNode, Booking
from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.mig import Taken, arrangements, creatable, geometry_of, idle_instances, taken_by
from gpuwatch.model.jobs import DemandShape

_KEPT = 8  # profiles whose counts are kept


class Repartition:
    """Devices of a booking that are in MIG mode, by what they could give after deleting instances nobody holds."""

    def __init__(self, booking: Booking, columns: Columns) -> None:
        self._columns = columns
        self._cut = [
            (row, at, booked)
            for row, booked in enumerate(booking.nodes.values())
            for at, gpu in enumerate(booked.node.gpus)
            if gpu.mig_enabled
        ]
        self._counts: dict[str, IntArray] = {}

    def instances(self, shape: DemandShape) -> IntArray:
        """(N,) instances of the shape's profile that its accepted models could give: those free now, or more."""
        profile = shape.mig_profile or ""
        found = self._counts.get(profile)
        if found is None:
            found = self._counted(profile)
            if len(self._counts) >= _KEPT:
                self._counts.clear()
            self._counts[profile] = found
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


def _most(booked: BookedNode, at: int, profile: str) -> int:
    """Instances of `profile` that device `at` could hold beside those that somebody holds, placed from the left."""
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
    taken, count = taken_by(geometry, layouts[0]) or Taken(), 0
    for start in starts:
        if taken.fits(geometry, wanted, start):
            taken, count = taken.plus(wanted, start), count + 1
    return count
