"""Books every bound member of a snapshot on the devices of its node: the one place where holds become free capacity.

Known devices are booked as told. Members whose devices nobody names are booked after them, deterministically, so that
counts are right even where positions are a guess. What does not add up becomes a Finding and is clipped, never hidden.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuwatch.model.catalogue import slices_of
from gpuwatch.model.cluster import BLOCK_CAUSES, Gpu, Node
from gpuwatch.model.jobs import Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot, Finding
from gpuwatch.model.units import MILLI


@dataclass(frozen=True, slots=True)
class Hold:
    """One member's hold on one device: a time share in milligpu, or a MIG instance (then milligpu is 0)."""

    job: Job
    member: Member
    milligpu: int
    mig_instance: str | None
    guessed: bool  # nobody said which device it is


@dataclass(slots=True)
class BookedNode:
    """A node with its holds. Lists run parallel to node.gpus.

    left_milligpu: 0..1000 not held of each device, whether or not it may be scheduled; 0 for a device in MIG mode.
    usable: healthy (or nobody says otherwise), on a node that takes work, not in MIG mode.
    cpu_free_millicores, memory_free_bytes: 0 or more; None when the node's capacity is unknown.
    cpu_over_millicores, memory_over_bytes: what is asked for beyond capacity; a job that leaves frees that first.
    """

    node: Node
    holds: list[list[Hold]]
    left_milligpu: list[int]
    usable: list[bool]
    cpu_free_millicores: int | None
    memory_free_bytes: int | None
    cpu_over_millicores: int = 0
    memory_over_bytes: int = 0

    @property
    def free_milligpu(self) -> list[int]:
        """What can be given away of each device now: left where usable, else 0."""
        return [left if ok else 0 for left, ok in zip(self.left_milligpu, self.usable, strict=True)]


@dataclass(frozen=True, slots=True)
class Booking:
    """All nodes by name, in snapshot order, and what did not add up."""

    nodes: dict[str, BookedNode]
    findings: tuple[Finding, ...] = ()
    unbooked: tuple[tuple[Job, Member], ...] = field(default=())  # bound members that found no device or no node


def held_ratio(gpu: Gpu, holds: Iterable[Hold]) -> float:
    """The part of a device that `holds` take together; above 1 where it is held twice over. A MIG instance counts its
    compute slices, once, however many claim it."""
    holds = list(holds)
    slices = {instance.id: max(0, instance.compute_slices) for instance in gpu.mig_instances}
    cut = sum(slices.get(name, 0) for name in {hold.mig_instance for hold in holds if hold.mig_instance})
    shared = sum(max(0, hold.milligpu) for hold in holds if hold.mig_instance is None)
    return cut / slices_of(gpu.model)[0] + shared / MILLI


def node_block_cause(node: Node) -> str | None:
    """The one cause that a blocked node's free devices are charged to; None when the node takes work."""
    known = [cause for cause in BLOCK_CAUSES if cause in node.block_causes]
    return known[0] if known else (node.block_causes[0] if node.block_causes else None)


def book(snapshot: ClusterSnapshot) -> Booking:
    """Books all bound members of `snapshot`. Never raises on odd data: it clips and reports."""
    findings: list[Finding] = []
    unbooked: list[tuple[Job, Member]] = []
    nodes = {node.name: _empty(node) for node in snapshot.nodes}
    bound: dict[str, list[tuple[Job, Member]]] = defaultdict(list)
    for job, member in _bound_members(snapshot.jobs):
        if member.node in nodes:
            bound[member.node].append((job, member))
        else:
            unbooked.append((job, member))
            where = f"node {member.node} is not in the snapshot; its devices are not counted as allocated"
            findings.append(Finding(code="unknown_node", severity="warning", subject=job.id, detail=where))
    for name, members in bound.items():
        booked = nodes[name]
        for job, member in sorted(members, key=lambda pair: not pair[1].devices_known):
            if not _take(booked, job, member):
                unbooked.append((job, member))
                wanted = f"holds {job.shape.gpus} device(s) on {name}, which has no such devices left"
                findings.append(Finding(code="over_allocated", severity="warning", subject=job.id, detail=wanted))
        findings += _clip(booked)
    return Booking(nodes=nodes, findings=tuple(findings), unbooked=tuple(unbooked))


def _bound_members(jobs: Iterable[Job]) -> Iterable[tuple[Job, Member]]:
    for job in jobs:
        if job.phase != "finished":
            for member in job.members:
                if member.node is not None:
                    yield job, member


def _empty(node: Node) -> BookedNode:
    open_for_work = node_block_cause(node) is None
    cpu, memory = node.cpu_allocatable_millicores, node.memory_allocatable_bytes
    return BookedNode(
        node=node,
        holds=[[] for _ in node.gpus],
        left_milligpu=[0 if gpu.mig_enabled else MILLI for gpu in node.gpus],
        usable=[open_for_work and gpu.health != "unhealthy" and not gpu.mig_enabled for gpu in node.gpus],
        cpu_free_millicores=None if cpu is None else cpu - node.other_cpu_requested_millicores,
        memory_free_bytes=None if memory is None else memory - node.other_memory_requested_bytes,
    )


def _take(booked: BookedNode, job: Job, member: Member) -> bool:
    """Books one member; False when some of its devices could not be found."""
    if booked.cpu_free_millicores is not None:
        booked.cpu_free_millicores -= job.shape.cpu_millicores
    if booked.memory_free_bytes is not None:
        booked.memory_free_bytes -= job.shape.memory_bytes
    if member.devices_known:
        return _take_known(booked, job, member)
    if job.shape.mig_profile:
        return _guess_mig(booked, job, member)
    return _guess_shares(booked, job, member)


def _take_known(booked: BookedNode, job: Job, member: Member) -> bool:
    position = {gpu.index: at for at, gpu in enumerate(booked.node.gpus)}
    found = True
    for share in member.shares:
        at = position.get(share.gpu_index)
        if at is None:
            found = False
            continue
        booked.holds[at].append(Hold(job, member, share.milligpu, share.mig_instance, guessed=False))
        booked.left_milligpu[at] -= share.milligpu
    return found


def _guess_shares(booked: BookedNode, job: Job, member: Member) -> bool:
    """Fullest device that still has room first, healthy before unhealthy, then lowest position."""
    need = job.shape.milligpu_per_gpu
    for _ in range(job.shape.gpus):
        fitting = [
            (gpu.health == "unhealthy", left, at)
            for at, (gpu, left) in enumerate(zip(booked.node.gpus, booked.left_milligpu, strict=True))
            if left >= need and not gpu.mig_enabled and not any(hold.member is member for hold in booked.holds[at])
        ]
        if not fitting:
            return False
        at = min(fitting)[2]
        booked.holds[at].append(Hold(job, member, need, None, guessed=True))
        booked.left_milligpu[at] -= need
    return True


def _guess_mig(booked: BookedNode, job: Job, member: Member) -> bool:
    free = (
        (at, instance.id)
        for at, gpu in enumerate(booked.node.gpus)
        for instance in gpu.mig_instances
        if instance.profile == job.shape.mig_profile and not _held(booked.holds[at], instance.id)
    )
    for _ in range(job.shape.gpus):
        spot = next(free, None)
        if spot is None:
            return False
        booked.holds[spot[0]].append(Hold(job, member, 0, spot[1], guessed=True))
    return True


def _held(holds: list[Hold], instance: str) -> bool:
    return any(hold.mig_instance == instance for hold in holds)


def _clip(booked: BookedNode) -> list[Finding]:
    findings = []
    for at, (gpu, left) in enumerate(zip(booked.node.gpus, booked.left_milligpu, strict=True)):
        if left < 0:
            findings.append(_over(booked.node, gpu, MILLI - left))
            booked.left_milligpu[at] = 0
    if booked.cpu_free_millicores is not None and booked.cpu_free_millicores < 0:
        booked.cpu_over_millicores, booked.cpu_free_millicores = -booked.cpu_free_millicores, 0
    if booked.memory_free_bytes is not None and booked.memory_free_bytes < 0:
        booked.memory_over_bytes, booked.memory_free_bytes = -booked.memory_free_bytes, 0
    return findings


def _over(node: Node, gpu: Gpu, held_milligpu: int) -> Finding:
    detail = f"{held_milligpu} thousandths of device {gpu.index} are held; counted as one whole device"
    return Finding(code="over_allocated", severity="warning", subject=f"{node.name}/{gpu.index}", detail=detail)
