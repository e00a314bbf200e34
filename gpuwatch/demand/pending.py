"""Who waits for what: running, pending and gated GPUs per pool and kind, and jobs that fit by sum but not by shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gpuwatch.demand.series import Asked, asked
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.feasible import Room, room, start_all
from gpuwatch.model.evaluation import PendingDemand
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.snapshot import ClusterSnapshot


def pending_demand(snapshot: ClusterSnapshot, booking: Booking) -> tuple[PendingDemand, ...]:
    """One row per (pool, kind) that asks for a GPU, sorted.

    A waiting job is listed as fitting by sum when the free device time in the pools it may use covers all its waiting
    members, and yet these cannot all start together: by devices of one node, CPU or memory.
    """
    running: dict[tuple[str, str], int] = defaultdict(int)
    waiting: dict[tuple[str, str], int] = defaultdict(int)
    gated: dict[tuple[str, str], int] = defaultdict(int)
    stuck: dict[tuple[str, str], list[str]] = defaultdict(list)
    tally = {"running": running, "pending": waiting, "gated": gated}
    check = ShapeCheck(booking)
    for part in asked(snapshot):
        if part.milligpu:
            key = part.pool, part.job.kind
            tally[part.state][key] += part.milligpu
            if part.state == "pending" and check.fits_by_sum_only(part):
                stuck[key].append(part.job.id)
    return tuple(
        PendingDemand(
            pool=key[0],
            kind=key[1],
            demand_milligpu=running[key] + waiting[key],
            pending_milligpu=waiting[key],
            gated_milligpu=gated[key],
            fits_by_sum_not_by_shape_jobs=tuple(sorted(stuck[key])),
        )
        for key in sorted({*running, *waiting, *gated})
    )


class ShapeCheck:
    """Answers for one booking, remembered per shape: queues repeat few shapes."""

    def __init__(self, booking: Booking) -> None:
        self.rooms = {name: room(booked) for name, booked in booking.nodes.items()}
        # Nodes with nothing to give can be left out of every question about devices.
        self._giving = [r for r in self.rooms.values() if any(r.free_milligpu) or r.free_instances]
        self._pools = {r.node.pool for r in self.rooms.values()}
        self._known: dict[tuple[str, DemandShape, int], bool] = {}

    def giving(self, pool: str) -> list[Room]:
        """Rooms with free devices that a job asking for `pool` may use; an unknown pool may use none."""
        return self._giving if pool == ALL_POOLS else [r for r in self._giving if r.node.pool == pool]

    def can_start(self, pool: str, shape: DemandShape, members: int) -> bool:
        """Whether all `members` of `shape` could start now, together."""
        key = pool, shape, members
        if key not in self._known:
            self._known[key] = start_all(self.giving(pool), shape, members) is not None
        return self._known[key]

    def fits_by_sum_only(self, part: Asked) -> bool:
        """Enough free device time in sum, and yet no way to start."""
        shape = part.job.shape
        if shape.mig_profile or part.milligpu > _free(self.giving(part.pool), shape):
            return False
        return not self.can_start(part.pool, shape, part.members)


def _free(rooms: Iterable[Room], shape: DemandShape) -> int:
    accepted = shape.gpu_models
    return sum(
        free
        for place in rooms
        for gpu, free in zip(place.node.gpus, place.free_milligpu, strict=True)
        if not accepted or gpu.model in accepted
    )
