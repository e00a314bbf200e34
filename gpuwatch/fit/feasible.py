"""Can this shape start here now, and on which devices? Plain Python on one node at a time, for few questions.

A Room is a mutable copy of what a node can still give, so that moves can be tried in order. Unknown CPU or memory
capacity does not refuse a shape: nobody measured that it lacks. Whole-cluster scans belong to the columnar view.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuwatch.fit.booking import BookedNode, Hold, node_block_cause
from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

Spot = tuple[int, str | None]  # position in node.gpus, MIG instance or None for a time share


@dataclass(slots=True)
class Room:
    """What one node can still give. `free_milligpu` runs parallel to node.gpus; free_instances are (position, id)."""

    node: Node
    takes_work: bool
    free_milligpu: list[int]
    free_instances: list[tuple[int, str]]
    cpu_free_millicores: int | None
    memory_free_bytes: int | None

    def copy(self) -> Room:
        """An independent Room in the same state."""
        return Room(
            node=self.node,
            takes_work=self.takes_work,
            free_milligpu=list(self.free_milligpu),
            free_instances=list(self.free_instances),
            cpu_free_millicores=self.cpu_free_millicores,
            memory_free_bytes=self.memory_free_bytes,
        )


def room(booked: BookedNode, without: frozenset[str] = frozenset()) -> Room:
    """The room on a booked node, as if the jobs with the ids in `without` had left it.

    What a leaving job gives back is counted from the holds that stay, so that a device held twice over, an unhealthy
    one or a blocked node gives back no more than it has.
    """
    takes_work = node_block_cause(booked.node) is None
    kept = [[hold for hold in holds if hold.job.id not in without] for holds in booked.holds]
    leaving = list(
        {id(hold.member): hold.job.shape for holds in booked.holds for hold in holds if hold.job.id in without}.values()
    )
    return Room(
        node=booked.node,
        takes_work=takes_work,
        free_milligpu=[
            _left(ok, free, before, after)
            for ok, free, before, after in zip(booked.usable, booked.free_milligpu, booked.holds, kept, strict=True)
        ],
        free_instances=[
            (at, instance.id)
            for at, gpu in enumerate(booked.node.gpus)
            if gpu.mig_instances and takes_work and gpu.health != "unhealthy"
            for instance in gpu.mig_instances
            if all(hold.mig_instance != instance.id for hold in kept[at])
        ],
        cpu_free_millicores=_given_back(
            booked.cpu_free_millicores, booked.cpu_over_millicores, [shape.cpu_millicores for shape in leaving]
        ),
        memory_free_bytes=_given_back(
            booked.memory_free_bytes, booked.memory_over_bytes, [shape.memory_bytes for shape in leaving]
        ),
    )


def _given_back(free: int | None, over: int, amounts: list[int]) -> int | None:
    return None if free is None else max(0, free - over + sum(amounts))


def _left(usable: bool, free: int, before: list[Hold], after: list[Hold]) -> int:
    if len(before) == len(after) or not usable:
        return free
    return max(0, MILLI - sum(hold.milligpu for hold in after))


def spots(place: Room, shape: DemandShape) -> tuple[Spot, ...] | None:
    """Where one member of `shape` would go: the fullest devices that fit, then the lowest; None when it cannot."""
    if not place.takes_work or shape.gpus < 0 or _lacks(place.cpu_free_millicores, shape.cpu_millicores):
        return None
    if _lacks(place.memory_free_bytes, shape.memory_bytes):
        return None
    accepted = shape.gpu_models
    gpus = place.node.gpus
    if shape.mig_profile:
        found: list[Spot] = [
            (at, name)
            for at, name in place.free_instances
            if (not accepted or gpus[at].model in accepted)
            and any(i.id == name and i.profile == shape.mig_profile for i in gpus[at].mig_instances)
        ]
    else:
        need = max(1, shape.milligpu_per_gpu)
        fitting = sorted(
            (free, at)
            for at, free in enumerate(place.free_milligpu)
            if free >= need and (not accepted or gpus[at].model in accepted)
        )
        found = [(at, None) for _, at in fitting]
    return tuple(found[: shape.gpus]) if len(found) >= shape.gpus else None


def take(place: Room, shape: DemandShape, where: Iterable[Spot]) -> None:
    """Books one member of `shape` at `where` (from `spots`)."""
    for at, instance in where:
        if instance is None:
            place.free_milligpu[at] -= shape.milligpu_per_gpu
        else:
            place.free_instances.remove((at, instance))
    if place.cpu_free_millicores is not None:
        place.cpu_free_millicores -= shape.cpu_millicores
    if place.memory_free_bytes is not None:
        place.memory_free_bytes -= shape.memory_bytes


def fits(place: Room, shape: DemandShape, at_most: int = 64) -> int:
    """How many members of `shape` could start on this node, one after the other, counted up to `at_most`."""
    trial, count = place.copy(), 0
    while count < at_most and (where := spots(trial, shape)) is not None:
        take(trial, shape, where)
        count += 1
    return count


def start_all(places: Iterable[Room], shape: DemandShape, members: int) -> dict[str, int] | None:
    """Members per node when all `members` can start together; None when they cannot. `places` are left as they are."""
    chosen: dict[str, int] = {}
    left = members
    for place in places:
        if left <= 0:
            break
        if spots(place, shape) is None:
            continue
        count = 1 if left == 1 else fits(place, shape, at_most=left)
        if count:
            chosen[place.node.name] = count
            left -= count
    return chosen if left <= 0 else None


def _lacks(free: int | None, wanted: int) -> bool:
    return free is not None and free < wanted
