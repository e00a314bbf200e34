"""How a device in MIG mode can be cut: legal layouts, where an instance could start, what a device could still take.

An instance sits on a run of memory slices and takes compute slices. A layout is legal when each instance starts where
its profile may, no memory slice is taken twice, the compute slices add up to no more than the device has, and at most
one instance has the media extensions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gpuwatch.fit.booking import BookedNode, node_block_cause
from gpuwatch.model.catalogue import MigGeometry, MigProfile, mig_geometry
from gpuwatch.model.cluster import Gpu, MigInstance
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import MIB

IDLE_PEAK_RATIO = AnalysisSettings().idle_peak_ratio  # where nobody sets another


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """One instance of a layout: the memory slice that it starts at, and its profile's name."""

    start: int
    profile: str


Layout = tuple[Slot, ...]  # sorted by start


@dataclass(frozen=True, slots=True)
class Taken:
    """What a layout leaves of a device. `memory` has bit i set when memory slice i is taken."""

    memory: int = 0
    compute: int = 0
    media: bool = False

    def fits(self, geometry: MigGeometry, profile: MigProfile, start: int) -> bool:
        """Whether an instance of `profile` could stand at `start` beside what is taken."""
        return (
            start in profile.placements
            and not self.memory & mask(profile, start)
            and self.compute + profile.compute_slices <= geometry.compute_slices
            and not (self.media and profile.media_extensions)
        )

    def plus(self, profile: MigProfile, start: int) -> Taken:
        """The same with one more instance."""
        return Taken(
            self.memory | mask(profile, start),
            self.compute + profile.compute_slices,
            self.media or profile.media_extensions,
        )


def mask(profile: MigProfile, start: int) -> int:
    """The memory slices of an instance as bits."""
    return ((1 << profile.memory_slices) - 1) << start


def geometry_of(gpu: Gpu) -> MigGeometry | None:
    """How this device can be cut, under the profile names that it reports; None when its card cannot or is unknown."""
    total = gpu.memory_total_bytes / MIB if gpu.memory_total_bytes else None
    return mig_geometry(gpu.model, total, tuple(sorted({each.profile for each in gpu.mig_instances})))


def taken_by(geometry: MigGeometry, layout: Iterable[Slot]) -> Taken | None:
    """What a layout takes; None when it is not legal."""
    taken = Taken()
    for slot in layout:
        profile = geometry.profile(slot.profile)
        if profile is None or not taken.fits(geometry, profile, slot.start):
            return None
        taken = taken.plus(profile, slot.start)
    return taken


def starts(geometry: MigGeometry, layout: Iterable[Slot], profile: str) -> tuple[int, ...]:
    """Where an instance of `profile` could be created beside `layout`; empty when nowhere or when no such profile."""
    taken, wanted = taken_by(geometry, layout), geometry.profile(profile)
    if taken is None or wanted is None:
        return ()
    return tuple(start for start in wanted.placements if taken.fits(geometry, wanted, start))


@lru_cache(maxsize=64)
def layouts(geometry: MigGeometry, kinds: tuple[str, ...]) -> tuple[Layout, ...]:
    """Every legal layout of instances of the profiles `kinds`, the empty one included, sorted."""
    return tuple(sorted(tuple(sorted(layout)) for layout in _grown(geometry, kinds, Taken(), 0)))


def maximal_layouts(geometry: MigGeometry, kinds: tuple[str, ...]) -> tuple[Layout, ...]:
    """The legal layouts to which no further instance of `kinds` can be added."""
    return tuple(
        layout for layout in layouts(geometry, kinds) if not any(starts(geometry, layout, kind) for kind in kinds)
    )


def _grown(geometry: MigGeometry, kinds: tuple[str, ...], taken: Taken, first: int) -> Iterator[Layout]:
    """Layouts whose further instances start at memory slice `first` or later."""
    yield ()
    for start in range(first, geometry.memory_slices):
        for kind in kinds:
            profile = geometry.profile(kind)
            if profile is not None and taken.fits(geometry, profile, start):
                for rest in _grown(geometry, kinds, taken.plus(profile, start), start + 1):
                    yield (Slot(start, kind), *rest)


def arrangements(geometry: MigGeometry, instances: Collection[MigInstance]) -> tuple[Layout, ...]:
    """Every legal layout that these instances may stand in: one where their starts are told, several where they are
    not, none where they contradict the geometry (a profile that the card does not have, or an overlap)."""
    found = {tuple(sorted(each)) for each in _placed(geometry, sorted(instances, key=_told_first), Taken(), 0)}
    return tuple(sorted(found))


def _told_first(instance: MigInstance) -> tuple[bool, str, str]:
    return instance.placement_start is None, instance.profile, instance.id


def _placed(geometry: MigGeometry, instances: list[MigInstance], taken: Taken, first: int) -> Iterator[Layout]:
    """Equal instances without a told start go left to right, from `first`: they are not told apart."""
    if not instances:
        yield ()
        return
    head, *rest = instances
    profile = geometry.profile(head.profile)
    if profile is None:
        return
    told = head.placement_start
    for start in [each for each in profile.placements if each >= first] if told is None else [told]:
        if taken.fits(geometry, profile, start):
            alike = told is None and bool(rest) and rest[0].profile == head.profile
            for others in _placed(geometry, rest, taken.plus(profile, start), start if alike else 0):
                yield (Slot(start, head.profile), *others)


def idle_instances(booked: BookedNode, at: int, idle_peak_ratio: float = IDLE_PEAK_RATIO) -> tuple[MigInstance, ...]:
    """The instances of device `at` that could be deleted: nobody holds them, none was measured busier than
    `idle_peak_ratio` (somebody uses it whom the snapshot does not know), and their id is the driver's own.

    Where a hold on the node is a guess, every instance of its profile there may be the one that is held.
    """
    held = {hold.mig_instance for hold in booked.holds[at]}
    doubtful = {hold.job.shape.mig_profile for holds in booked.holds for hold in holds if hold.guessed}
    return tuple(
        each
        for each in booked.node.gpus[at].mig_instances
        if each.id not in held
        and each.profile not in doubtful
        and each.id.isdecimal()
        and not _works(each, idle_peak_ratio)
    )


def _works(instance: MigInstance, idle_peak_ratio: float) -> bool:
    peak = instance.activity.peak_ratio if instance.activity else None
    now = instance.telemetry.engine_active_ratio if instance.telemetry else None
    return any(seen is not None and seen >= idle_peak_ratio for seen in (peak, now))


def creatable(booked: BookedNode, at: int, profile: str, *, enable_mig: bool = False) -> tuple[int, ...]:
    """Where an instance of `profile` could start on device `at` of a node, now or after deleting idle instances.

    No instance that somebody holds is touched. A device that is not in MIG mode counts only with `enable_mig`, and then
    only when nobody holds any of it. Where starts of held instances are not told, a start counts when it is free in
    every layout that they may stand in. Empty when there is none, also for a device that takes no work.
    """
    gpu = booked.node.gpus[at]
    geometry = geometry_of(gpu)
    if geometry is None or gpu.health == "unhealthy" or node_block_cause(booked.node) is not None:
        return ()
    if not gpu.mig_enabled and (booked.holds[at] or gpu.replicas > 1 or not enable_mig):
        return ()
    idle = {each.id for each in idle_instances(booked, at)}
    kept = [each for each in gpu.mig_instances if each.id not in idle]
    free = [{*starts(geometry, layout, profile)} for layout in arrangements(geometry, kept)]
    return tuple(sorted(set.intersection(*free))) if free else ()
