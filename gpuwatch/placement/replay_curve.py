"""From the course of a replay to its curve and its admission by size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpuwatch.fit.columns import BoolArray, FloatArray, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.replay import CPU_ONLY, SHARE, ReplayPoint, SizeAdmission
from gpuwatch.model.units import MILLI


def curve(asked: IntArray, free: FloatArray, fragment: FloatArray, capacity: int) -> tuple[ReplayPoint, ...]:
    """One point for each whole percent of `capacity` that arrivals fell on: the means over these arrivals.

    asked, free, fragment: (T,) milligpu that each job asks for, and free and F of the cluster after it came.
    """
    percent = np.rint(100 * asked.cumsum() / capacity).astype(np.int64)
    idle = free > 0
    ratio = np.divide(fragment, free, out=np.zeros(len(free)), where=idle)
    points = []
    for at in np.unique(percent):
        here = percent == at
        known = here & idle
        points.append(
            ReplayPoint(
                arrived_percent=int(at),
                allocation_ratio=float(np.mean(1 - free[here] / capacity)),
                fragment_ratio=float(np.mean(ratio[known])) if known.any() else None,
                fragment_of_capacity_ratio=float(np.mean(fragment[here] / capacity)),
            )
        )
    return tuple(points)


def ratio_at(points: Sequence[ReplayPoint], percent: int) -> float | None:
    """The allocation at the point `percent`; None when no arrival fell on it."""
    return next((point.allocation_ratio for point in points if point.arrived_percent == percent), None)


def size_label(shape: DemandShape) -> str:
    """cpu, share, or the number of whole devices."""
    if shape.gpus == 0:
        return CPU_ONLY
    return SHARE if shape.milligpu < MILLI else str(shape.gpus)


def admission(shapes: Sequence[DemandShape], admitted: BoolArray, capacity: int) -> tuple[SizeAdmission, ...]:
    """By size, CPU-only first, then by devices: who came, who was placed, up to 100% of `capacity` and in all."""
    came, taken, came_early, taken_early = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    arrived = 0
    for shape, ok in zip(shapes, admitted.tolist(), strict=True):
        size = size_label(shape)
        arrived += shape.milligpu
        came[size] += 1
        taken[size] += ok
        if arrived <= capacity:
            came_early[size] += 1
            taken_early[size] += ok
    known = [size for size in (CPU_ONLY, SHARE) if size in came]
    whole = sorted((size for size in came if size.isdigit()), key=int)
    return tuple(
        SizeAdmission(
            size=size,
            arrived=came_early[size],
            admitted=taken_early[size],
            arrived_in_all=came[size],
            admitted_in_all=taken[size],
        )
        for size in (*known, *whole)
    )
