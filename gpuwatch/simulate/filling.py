"""Puts work on a node: first what was planted, then background work from the plan's mix, within CPU and memory."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import DemandShape, DeviceShare, JobKind, Member
from gpuwatch.model.units import GIB, MILLI
from gpuwatch.simulate.jobs import MIXES, PLANTED, SLICE_KINDS, TENANTS, PlantedJob
from gpuwatch.simulate.layout import Cycle, Layout, Slot, behavior_of, job_name, pick, share
from gpuwatch.simulate.machines import GPU_FAULTS, NodePlan

_PREFIX = {"training": "train", "inference": "serve", "interactive": "notebook", "batch": "batch"}
_OWNER = {"training": "Job", "inference": "Deployment", "interactive": "StatefulSet", "batch": "Job"}
_CYCLING_FILLS = ("research", "serve", "shares", "replicas")  # the training pools hold what the queue waits for
_TIGHT_CPUS_PER_GPU, _TIGHT_GIB_PER_GPU = 2, 16  # what is kept back for each device that stays free


class _Room:
    """What is still free on the node being filled."""

    def __init__(self, node: Node) -> None:
        self.free = [g.index for g in node.gpus if not g.mig_enabled and not set(g.health_causes) & {*GPU_FAULTS}]
        self.cpu = (node.cpu_allocatable_millicores or 0) - node.other_cpu_requested_millicores
        self.memory = (node.memory_allocatable_bytes or 0) - node.other_memory_requested_bytes

    def take(self, shape: DemandShape) -> None:
        self.cpu -= shape.cpu_millicores
        self.memory -= shape.memory_bytes


def fill_node(layout: Layout, name: str, plan: NodePlan, copy: int) -> None:
    """Adds the slots of one node to the layout."""
    draw = Random(f"{layout.seed}/jobs/{name}")
    room = _Room(layout.nodes[name])
    for job_id in plan.jobs:
        _plant(layout, name, PLANTED[job_id], room, copy)
    if plan.mig:
        _slices(layout, name, plan, room, draw)
    if plan.fill in ("shares", "replicas"):
        _fill_shares(layout, name, plan, room, draw)
    elif plan.fill:
        _fill_whole(layout, name, plan, room, draw)


def _plant(layout: Layout, node: str, wanted: PlantedJob, room: _Room, copy: int) -> None:
    devices, room.free = room.free[: wanted.gpus], room.free[wanted.gpus :]
    shape = DemandShape(
        gpus=wanted.gpus,
        cpu_millicores=round(wanted.cpus_per_gpu * MILLI) * wanted.gpus,
        memory_bytes=round(wanted.memory_gib_per_gpu * GIB) * wanted.gpus,
    )
    room.take(shape)
    does = tuple(wanted.behaviors[min(i, len(wanted.behaviors) - 1)] for i in range(wanted.gpus))
    name = job_name(wanted.name, copy)
    twins = [s for s in layout.slots if s.tenant == wanted.tenant and s.name.split("--")[0] == name]
    if wanted.gang and twins:
        first = twins[0]
        member = _member(name, len(first.members), node, tuple(map(share, devices)))
        at = layout.slots.index(first)
        layout.slots[at] = replace(first, members=(*first.members, member), behaviors=(*first.behaviors, does))
        return
    if twins:
        name = f"{name}--{len(twins) + 1}"
    if wanted.case:
        layout.planted[wanted.case].append(f"{wanted.tenant}/{name}")
    member = _member(name, 0, node, tuple(map(share, devices)), wanted.terminating)
    layout.slots.append(
        Slot(
            name=name,
            tenant=wanted.tenant,
            kind=wanted.kind,
            shape=shape,
            members=(member,),
            owner=f"{wanted.owner_kind}/{name}",
            age_seconds=60 * wanted.age_minutes,
            behaviors=(does,),
            pool=layout.nodes[node].pool,
            preemptible=wanted.preemptible,
            protected=wanted.protected,
            checkpoint_seconds=None if wanted.checkpoint_minutes is None else 60 * wanted.checkpoint_minutes,
            samples_ratio=wanted.samples_ratio,
        )
    )


def _fill_whole(layout: Layout, node: str, plan: NodePlan, room: _Room, draw: Random) -> None:
    mix = MIXES[plan.fill or ""]
    while len(room.free) > plan.leave:
        wanted = min(pick(draw, mix.gpus), len(room.free) - plan.leave)
        devices, room.free = room.free[:wanted], room.free[wanted:]
        kind = pick(draw, mix.kinds)
        cpu = draw.choice(mix.cpus_per_gpu) * wanted * MILLI
        memory = draw.choice(mix.memory_gib_per_gpu) * wanted * GIB
        shape = DemandShape(
            gpus=wanted,
            cpu_millicores=min(cpu, room.cpu - _TIGHT_CPUS_PER_GPU * MILLI * len(room.free)),
            memory_bytes=min(memory, room.memory - _TIGHT_GIB_PER_GPU * GIB * len(room.free)),
        )
        _background(layout, node, kind, shape, tuple(map(share, devices)), room, draw, plan.fill)


def _fill_shares(layout: Layout, node: str, plan: NodePlan, room: _Room, draw: Random) -> None:
    """Fractions of a device: each device takes what the draw gives until the next one does not fit."""
    mix = MIXES[plan.fill or ""]
    for device in room.free[: len(room.free) - plan.leave]:
        left = MILLI
        while (part := pick(draw, mix.milligpu)) <= left:
            left -= part
            shape = DemandShape(
                gpus=1,
                milligpu_per_gpu=part,
                cpu_millicores=draw.choice(mix.cpus_per_gpu) * MILLI,
                memory_bytes=draw.choice(mix.memory_gib_per_gpu) * GIB,
            )
            kind = pick(draw, mix.kinds)
            _background(layout, node, kind, shape, (share(device, part),), room, draw, plan.fill)


def _slices(layout: Layout, node: str, plan: NodePlan, room: _Room, draw: Random) -> None:
    for gpu in layout.nodes[node].gpus:
        for instance in gpu.mig_instances:
            # The three-slice instances are all held: one job in the queue waits for that profile.
            if not instance.profile.startswith("3g") and draw.random() > 0.7:
                continue
            shape = DemandShape(gpus=1, cpu_millicores=2 * MILLI, memory_bytes=16 * GIB, mig_profile=instance.profile)
            hold = (share(gpu.index, instance=instance.id),)
            _background(layout, node, pick(draw, SLICE_KINDS), shape, hold, room, draw, None)
    last = max((g for g in layout.nodes[node].gpus if g.mig_enabled), key=lambda g: g.index)
    silent = last.mig_instances[-1].id
    layout.silent_slices.add((node, last.index, silent))
    layout.planted["slice_without_series"].append(f"{node}/{last.index}/{silent}")


def _background(
    layout: Layout,
    node: str,
    kind: JobKind,
    shape: DemandShape,
    shares: tuple[DeviceShare, ...],
    room: _Room,
    draw: Random,
    fill: str | None,
) -> None:
    room.take(shape)
    name = f"{_PREFIX[kind]}-{len(layout.slots):04d}"
    does = behavior_of(kind, draw)
    cycling = fill in _CYCLING_FILLS and kind != "training" and shape.gpus <= 2 and draw.random() < 0.45
    cycle = Cycle(period_seconds=draw.uniform(1200, 9000), busy_ratio=draw.uniform(0.75, 0.9)) if cycling else None
    if cycle is not None and does in ("idle", "loaded_idle"):
        does = "batch"  # what comes and goes in minutes is at work
    age = draw.uniform(0.05, 0.8) * cycle.period_seconds * cycle.busy_ratio if cycle else 3600 * draw.uniform(1.2, 140)
    saved = draw.uniform(120, 5400) if kind in ("training", "batch") and draw.random() < 0.7 else None
    layout.slots.append(
        Slot(
            name=name,
            tenant=draw.choice(TENANTS),
            kind=kind,
            shape=shape,
            members=(_member(name, 0, node, shares),),
            owner=f"{_OWNER[kind]}/{name}",
            age_seconds=age,
            behaviors=((does,) * len(shares),),
            pool=layout.nodes[node].pool,
            preemptible=True if saved is not None else None,
            checkpoint_seconds=saved,
            cycle=cycle,
        )
    )


def _member(name: str, number: int, node: str, shares: tuple[DeviceShare, ...], terminating: bool = False) -> Member:
    return Member(name=f"{name}-{number}", node=node, shares=shares, devices_known=True, terminating=terminating)
