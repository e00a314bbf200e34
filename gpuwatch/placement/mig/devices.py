"""Which devices may be cut: what stays on each, what may go, and why the others are left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gpuwatch.fit.booking import BookedNode, Booking, node_block_cause
from gpuwatch.fit.mig import IDLE_PEAK_RATIO, arrangements, geometry_of, idle_instances
from gpuwatch.model.catalogue import MigGeometry, card, mig_geometry
from gpuwatch.model.cluster import Gpu, MigInstance
from gpuwatch.model.jobs import Job
from gpuwatch.model.mig import MigSpot
from gpuwatch.placement.mig.asks import TRAINING


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan may touch. Held instances are never touched."""

    gpu_models: tuple[str, ...] = ()  # empty: any
    pools: tuple[str, ...] = ()  # empty: any
    include_busy: bool = False  # devices that jobs hold whole may be drained
    allow_training: bool = False
    idle_peak_ratio: float = (
        IDLE_PEAK_RATIO  # an instance that nobody holds and that was busier than this is in use all the same
    )


@dataclass(frozen=True, slots=True)
class Device:
    """One device that a plan may cut."""

    node: str
    pool: str
    index: int
    uuid: str | None
    model: str
    geometry: MigGeometry
    held: tuple[MigInstance, ...] = ()
    idle: tuple[MigInstance, ...] = ()
    holders: tuple[tuple[str, tuple[str, ...]], ...] = ()  # instance id -> jobs
    enable_mig: bool = False
    drain: tuple[str, ...] = ()

    @property
    def free(self) -> bool:
        """Nobody holds any of it."""
        return not self.held and not self.drain

    @property
    def likeness(self) -> tuple[object, ...]:
        """Equal for devices that differ in name only."""
        stands = [tuple((each.profile, each.placement_start) for each in some) for some in (self.held, self.idle)]
        cut = tuple(profile.name for profile in self.geometry.profiles)  # with the model it tells the geometry
        return self.pool, self.model, cut, *stands, self.enable_mig, bool(self.drain)

    @property
    def tier_lost(self) -> int:
        """The card's placement tier when it is wholly free, else 0: what large jobs would miss most."""
        known = card(self.model)
        return known.placement_tier if known and self.free else 0

    def spot(self, instance: MigInstance) -> MigSpot:
        """The instance as the plan tells it."""
        return MigSpot(
            profile=instance.profile,
            start=instance.placement_start,
            memory_slices=instance.memory_slices,
            id=instance.id,
            held_by=dict(self.holders).get(instance.id, ()),
        )


def devices_of(booking: Booking, limits: Limits) -> tuple[list[Device], dict[str, int]]:
    """The devices that may be cut, in snapshot order, and reason -> number of cuttable ones that are left out."""
    lost = {member.node for _, member in booking.unbooked}
    found: list[Device] = []
    out: Counter[str] = Counter()
    for booked in booking.nodes.values():
        if limits.pools and booked.node.pool not in limits.pools:
            continue
        for at, gpu in enumerate(booked.node.gpus):
            geometry = geometry_of(gpu)
            if geometry is None or (limits.gpu_models and gpu.model not in limits.gpu_models):
                continue
            reason = "devices_unknown" if booked.node.name in lost else _left_out(booked, at, geometry, limits)
            if reason is None:
                found.append(_device(booked, at, geometry, limits))
            else:
                out[reason] += 1
    return found, dict(sorted(out.items()))


def empty_devices(model: str, count: int) -> list[Device]:
    """`count` devices of a card that stand nowhere yet: nothing is on them. No geometry, no devices."""
    geometry = mig_geometry(model)
    if geometry is None:
        return []
    return [
        Device(node="planned", pool="planned", index=at, uuid=None, model=model, geometry=geometry, enable_mig=True)
        for at in range(count)
    ]


def _left_out(booked: BookedNode, at: int, geometry: MigGeometry, limits: Limits) -> str | None:
    """The first reason that keeps a device out of the plan."""
    gpu, jobs = booked.node.gpus[at], _whole_holders(booked, at)
    guessed = any(hold.guessed and hold.mig_instance is None for holds in booked.holds for hold in holds)
    checks = (
        ("blocked", node_block_cause(booked.node) is not None),
        ("unhealthy", gpu.health == "unhealthy"),
        ("time_sliced", gpu.replicas > 1),
        ("devices_unknown", guessed and not gpu.mig_enabled),
        ("training", any(job.kind == TRAINING for job in jobs) and not limits.allow_training),
        ("busy", bool(jobs) and not limits.include_busy),
        ("job_must_stay", any(job.protected or job.preemptible is False for job in jobs)),
        ("layout_contradicts", not arrangements(geometry, gpu.mig_instances)),
    )
    return next((reason for reason, holds in checks if holds), None)


def _whole_holders(booked: BookedNode, at: int) -> list[Job]:
    """Jobs that hold the device itself, not an instance of it."""
    return list({hold.job.id: hold.job for hold in booked.holds[at] if hold.mig_instance is None}.values())


def _device(booked: BookedNode, at: int, geometry: MigGeometry, limits: Limits) -> Device:
    gpu = booked.node.gpus[at]
    idle = idle_instances(booked, at, limits.idle_peak_ratio)
    names = {each.id for each in idle}
    return Device(
        node=booked.node.name,
        pool=booked.node.pool,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model or "",
        geometry=geometry,
        held=tuple(each for each in gpu.mig_instances if each.id not in names),
        idle=idle,
        holders=_holders(booked, at, gpu),
        enable_mig=not gpu.mig_enabled,
        drain=tuple(sorted(job.id for job in _whole_holders(booked, at))),
    )


def _holders(booked: BookedNode, at: int, gpu: Gpu) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (each.id, tuple(sorted({hold.job.id for hold in booked.holds[at] if hold.mig_instance == each.id})))
        for each in gpu.mig_instances
    )
