"""Counting traps met in a snapshot: where a plain sum over jobs or devices would miscount, and by how many GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuwatch.fit.booking import Booking, Hold, held_ratio, node_block_cause
from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.jobs import Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.model.values import value


@value
class Trap:
    """One way to miscount that this cluster invites. `milligpu` is how far off the plain count would be."""

    id: str
    told: str
    handling: str
    milligpu: int
    subjects: int  # jobs' members, devices or nodes that it concerns
    example: str  # one of them by name


# What one trap found: (subject, thousandths of a device that the plain count gets wrong).
_Found = Iterator[tuple[str, int]]
_Search = Callable[[ClusterSnapshot, Booking], _Found]


def traps(snapshot: ClusterSnapshot, booking: Booking) -> tuple[Trap, ...]:
    """Every trap that is met, in the order of the ladder installed .. active."""
    met = []
    for id_, told, handling, search in _TRAPS:
        found = list(search(snapshot, booking))
        if found:
            total = sum(milligpu for _, milligpu in found)
            met.append(
                Trap(id=id_, told=told, handling=handling, milligpu=total, subjects=len(found), example=min(found)[0])
            )
    return tuple(met)


def _devices(booking: Booking) -> Iterator[tuple[Node, Gpu, list[Hold], int]]:
    """(node, device, holds, thousandths held)."""
    for booked in booking.nodes.values():
        for gpu, holds, left in zip(booked.node.gpus, booked.holds, booked.left_milligpu, strict=True):
            held = min(MILLI, round(MILLI * held_ratio(gpu, holds))) if gpu.mig_enabled else MILLI - left
            yield booked.node, gpu, holds, held


def _members(snapshot: ClusterSnapshot, phases: tuple[str, ...]) -> Iterator[tuple[Job, Member]]:
    for job in snapshot.jobs:
        if job.phase in phases and job.shape.gpus:
            for member in job.members:
                yield job, member


def _unhealthy(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((_name(n, g), MILLI) for n, g, _, _ in _devices(booking) if g.health == "unhealthy")


def _health_unknown(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((_name(n, g), MILLI) for n, g, _, _ in _devices(booking) if g.health == "unknown")


def _blocked_free(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for node, gpu, _, held in _devices(booking):
        if node_block_cause(node) and gpu.health != "unhealthy" and held < MILLI:
            yield _name(node, gpu), MILLI - held


def _blocked_busy(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((_name(n, g), held) for n, g, _, held in _devices(booking) if node_block_cause(n) and held)


def _replicas(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((_name(n, g), MILLI * (g.replicas - 1)) for n, g, _, _ in _devices(booking) if g.replicas > 1)


def _mig(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for node, gpu, _, _ in _devices(booking):
        if gpu.mig_enabled:
            yield _name(node, gpu), MILLI * abs(len(gpu.mig_instances) - 1)


def _fractions(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for _, _, holds, _ in _devices(booking):
        for hold in holds:
            if 0 < hold.milligpu < MILLI:
                yield hold.job.id, MILLI - hold.milligpu


def _finished(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return (
        (j.id, j.shape.demanded_milligpu) for j, member in _members(snapshot, ("finished",)) if member.node is not None
    )


def _pending_bound(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return (
        (j.id, j.shape.demanded_milligpu)
        for j, member in _members(snapshot, ("pending", "gated"))
        if member.node is not None
    )


def _pending(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((j.id, j.shape.demanded_milligpu) for j, member in _members(snapshot, ("pending",)) if member.node is None)


def _gated(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((j.id, j.shape.demanded_milligpu) for j, member in _members(snapshot, ("gated",)) if member.node is None)


def _terminating(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for job, member in _members(snapshot, ("running", "pending", "gated")):
        if member.terminating and member.node is not None:
            yield job.id, job.shape.demanded_milligpu


def _guessed(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for node, gpu, holds, held in _devices(booking):
        if any(hold.guessed for hold in holds):
            yield _name(node, gpu), held


def _unbooked(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    return ((job.id, job.shape.demanded_milligpu) for job, _ in booking.unbooked)


def _unmeasured(snapshot: ClusterSnapshot, booking: Booking) -> _Found:
    for node, gpu, _, held in _devices(booking):
        seen = [gpu.activity, *(each.activity for each in gpu.mig_instances)]
        if held and not any(activity and activity.peak_ratio is not None for activity in seen):
            yield _name(node, gpu), held


def _name(node: Node, gpu: Gpu) -> str:
    return f"{node.name}/{gpu.index}"


_TRAPS: tuple[tuple[str, str, str, _Search], ...] = (
    ("unhealthy_device", "broken devices that still count as capacity", "installed, but not healthy", _unhealthy),
    ("health_unknown", "devices whose health nobody reports", "counted as healthy, and told apart", _health_unknown),
    ("blocked_free", "idle devices on nodes that take no work", "blocked by cause, not free", _blocked_free),
    ("blocked_busy", "busy devices on nodes that take no new work", "still allocated", _blocked_busy),
    ("replicas", "time-slice or MPS replicas that look like devices", "divided by the replicas", _replicas),
    ("mig_instances", "slices that look like devices", "weighted by compute slices of 7", _mig),
    ("fractions", "jobs on a share of a device that look like one device", "counted by their share", _fractions),
    ("finished_jobs", "finished jobs whose requests are still listed", "not allocated", _finished),
    ("pending_bound", "jobs that wait but already hold a device", "allocated", _pending_bound),
    ("pending", "jobs that wait without a node", "demand, never allocated", _pending),
    ("gated", "jobs held back by a gate or a queue", "apart from what waits for a device", _gated),
    ("terminating", "jobs that end but have not let go", "allocated until they are gone", _terminating),
    ("guessed_devices", "holds that no one ties to a device", "counted, and placed by a fixed rule", _guessed),
    ("unbooked", "holds that fit on no device of their node", "left out of allocated, and reported", _unbooked),
    ("unmeasured", "held devices without a usable activity reading", "unknown, never idle", _unmeasured),
)
