"""What every rule may read: one snapshot with its booking and mix, and answers shared between rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from gpuwatch.advice.commands import owner_of
from gpuwatch.counting.idleness import IdleVerdict, verdict
from gpuwatch.demand.pending import ShapeCheck
from gpuwatch.demand.series import asked
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.feasible import Room, fits, spots, start_all
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.model.jobs import DemandShape, Job
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot

_Waiting = tuple[str, DemandShape, int]  # pool, shape, members


@dataclass
class AdviceContext:
    """The input of the rules. Values do not change; answers are remembered."""

    snapshot: ClusterSnapshot
    booking: Booking
    mix: DemandMix
    settings: AnalysisSettings
    _verdicts: dict[str, IdleVerdict] = field(default_factory=dict, init=False, repr=False)

    def verdict(self, job: Job) -> IdleVerdict:
        """The one judgment of this job's activity."""
        if job.id not in self._verdicts:
            self._verdicts[job.id] = verdict(job, self.booking, self.snapshot.taken_at, self.settings)
        return self._verdicts[job.id]

    @cached_property
    def running(self) -> tuple[Job, ...]:
        """Unfinished jobs that hold a device, in snapshot order."""
        ids = {hold.job.id for booked in self.booking.nodes.values() for holds in booked.holds for hold in holds}
        return tuple(job for job in self.snapshot.jobs if job.id in ids)

    def replicas(self, job: Job) -> int:
        """Members that the job's owner has in all, in this and other jobs of the snapshot; its own without an owner."""
        return max(self._replicas[job.tenant, owner_of(job)] if job.owner else 0, len(job.members))

    @cached_property
    def _replicas(self) -> Counter[tuple[str | None, tuple[str, str]]]:
        counts: Counter[tuple[str | None, tuple[str, str]]] = Counter()
        for job in self.snapshot.jobs:
            if job.phase != "finished" and job.owner:
                counts[job.tenant, owner_of(job)] += len(job.members)
        return counts

    @cached_property
    def shapes(self) -> ShapeCheck:
        """What can start now."""
        return ShapeCheck(self.booking)

    @cached_property
    def stuck(self) -> dict[_Waiting, tuple[str, ...]]:
        """Jobs that wait and cannot start now, by what they wait for; most urgent first."""
        found: dict[_Waiting, list[Job]] = defaultdict(list)
        for part in asked(self.snapshot):
            if part.state == "pending" and part.job.shape.gpus > 0:
                found[part.pool, part.job.shape, part.members].append(part.job)
        return {
            waiting: tuple(job.id for job in sorted(jobs, key=_urgency))
            for waiting, jobs in found.items()
            if not self.shapes.can_start(*waiting)
        }

    def unlocked(self, changed: Iterable[Room], others: Iterable[Room] | None = None) -> tuple[str, ...]:
        """Waiting jobs that cannot start now and could, each alone, if the nodes of `changed` had this room.

        `others`: the rest of the cluster, as it is now unless given. Of equal jobs as many as would fit are named.
        """
        rooms = {place.node.name: place for place in changed}
        rest = list(self.shapes.rooms.values() if others is None else others)
        names: list[str] = []
        for (pool, shape, members), ids in self.stuck.items():
            mine = [r for r in rooms.values() if pool in (ALL_POOLS, r.node.pool) and spots(r, shape) is not None]
            if not mine:
                continue
            if members == 1:
                names += ids[: sum(fits(place, shape, at_most=len(ids)) for place in mine)]
                continue
            beside = [r for r in rest if r.node.name not in rooms and pool in (ALL_POOLS, r.node.pool)]
            if start_all([*mine, *beside], shape, members) is not None:
                names.append(ids[0])
        return tuple(sorted(names))


def _urgency(job: Job) -> tuple[int, str, str]:
    submitted = job.submitted_at.isoformat() if job.submitted_at else "~"
    return -(job.priority or 0), submitted, job.id
