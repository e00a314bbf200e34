"""Can a shape run on a node, and how often? All nodes at once, over the columnar view.

For a few questions about one node that changes between them, feasible.py is the simpler tool.
"""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, IntArray, bounded
from gpuwatch.model.jobs import DemandShape

Rows = IntArray | slice
EVERY_ROW = slice(None)


def members_that_fit(columns: Columns, shape: DemandShape, rows: Rows = EVERY_ROW) -> IntArray:
    """(rows,) how many members of `shape` alone each node could start now, one after the other.

    A member that asks for nothing countable (no device, and no CPU or memory that anybody knows the amount of) counts
    once on every node that takes work: more could fit, nobody can say how many.
    """
    return bounded_beside(columns, np.where(columns.open[rows], _device_room(columns, shape, rows), 0), shape, rows)


def bounded_beside(columns: Columns, room: IntArray, shape: DemandShape, rows: Rows = EVERY_ROW) -> IntArray:
    """`room` (rows,), members that the devices hold, cut to what the CPU and memory beside them allow."""
    for asked, free, known in (
        (shape.cpu_millicores, columns.cpu_free, columns.cpu_known),
        (shape.memory_bytes, columns.memory_free, columns.memory_known),
    ):
        if asked > 0:
            room = np.where(known[rows], np.minimum(room, free[rows] // bounded(asked)), room)
    # Nothing countable is asked for: more than one would fit, nobody can say how many.
    return np.where(room == UNBOUNDED, 1, room.clip(min=0))


def fits(columns: Columns, shape: DemandShape, rows: Rows = EVERY_ROW) -> BoolArray:
    """(rows,) whether one member of `shape` could start on each node now."""
    beside = (columns.cpu_free[rows] >= shape.cpu_millicores) & (columns.memory_free[rows] >= shape.memory_bytes)
    return columns.open[rows] & beside & devices_fit(columns, shape, rows)


def devices_fit(columns: Columns, shape: DemandShape, rows: Rows = EVERY_ROW) -> BoolArray:
    """(rows,) whether the node has the devices (or MIG instances), whatever else is lacking."""
    if shape.gpus <= 0:
        return np.ones_like(columns.open[rows])
    if shape.mig_profile:
        return np.greater_equal(_instances(columns, shape, rows), shape.gpus)
    fitting: IntArray = roomy_devices(columns, shape, rows).sum(axis=1)
    return fitting >= shape.gpus


def roomy_devices(columns: Columns, shape: DemandShape, rows: Rows = EVERY_ROW) -> BoolArray:
    """(rows, W) accepted devices with room for one share of `shape`."""
    return columns.accepted(shape.gpu_models)[rows] & (columns.left[rows] >= shape.milligpu_per_gpu)


def first_devices(columns: Columns, row: int, shape: DemandShape) -> tuple[int, ...]:
    """The lowest `shape.gpus` columns of node `row` with room; for a MIG shape one column for each instance."""
    if shape.gpus <= 0:
        return ()
    if shape.mig_profile:
        free = columns.free_instances(shape.mig_profile, shape.gpu_models)[row]
        found = np.repeat(np.arange(len(free)), free)
    else:
        found = np.flatnonzero(columns.accepted(shape.gpu_models)[row] & (columns.left[row] >= shape.milligpu_per_gpu))
    return tuple(int(at) for at in found[: shape.gpus])


UNBOUNDED = np.iinfo(np.int64).max


def _device_room(columns: Columns, shape: DemandShape, rows: Rows) -> IntArray:
    if shape.gpus <= 0:
        return np.full(len(columns.names), UNBOUNDED, dtype=np.int64)[rows]
    if shape.mig_profile:
        return _instances(columns, shape, rows) // bounded(shape.gpus)
    accepted = columns.accepted(shape.gpu_models)[rows]
    # A share of nothing is data gone wrong; counted as the least share there is, so that no count is infinite.
    share, gpus = max(1, bounded(shape.milligpu_per_gpu)), bounded(shape.gpus)
    slots: IntArray = np.where(accepted, columns.left[rows] // share, 0)
    room: IntArray = slots.sum(axis=1) // gpus
    while gpus > 1:
        # The devices of a member differ, so of M members one device serves M at most: lower M until that adds up.
        fewer: IntArray = np.minimum(slots, room[:, None]).sum(axis=1) // gpus
        if (fewer == room).all():
            break
        room = fewer
    return room


def _instances(columns: Columns, shape: DemandShape, rows: Rows) -> IntArray:
    per_node: IntArray = columns.free_instances(shape.mig_profile or "", shape.gpu_models)[rows].sum(axis=1)
    return per_node
