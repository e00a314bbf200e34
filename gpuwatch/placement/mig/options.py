"""What could be made of one device: for every set of instances that it could serve, the cheapest way to get there.

Held instances stay. Idle ones serve as they are, stay unused, or are deleted where they stand in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from gpuwatch.fit.mig import Layout, Slot, Taken, arrangements, taken_by
from gpuwatch.model.catalogue import MigGeometry, MigProfile
from gpuwatch.model.cluster import MigInstance
from gpuwatch.placement.mig.devices import Device

Counts = tuple[int, ...]  # instances, parallel to the profiles asked for


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to make of a device. `layout` None: starts are not known, the driver chooses them."""

    serves: Counts
    creates: Counts
    delete: tuple[int, ...] = ()  # positions in device.idle
    layout: Layout | None = ()  # what is created
    later: int = 0  # size of the largest profile that still fits beside everything; see size()

    @property
    def changed(self) -> bool:
        """Whether anything is made or deleted."""
        return any(self.creates) or bool(self.delete)

    def cost(self) -> tuple[int, int, int]:
        """Smaller is better among options that serve the same: changed, deleted, room for a large profile later."""
        return int(self.changed), len(self.delete), -self.later


def size(profile: MigProfile) -> int:
    """Orders profiles by what they take: memory first, then compute."""
    return 16 * profile.memory_slices + profile.compute_slices


def largest(geometry: MigGeometry, layouts: tuple[Layout, ...]) -> MigProfile | None:
    """The largest profile that could be created beside every one of these layouts."""
    common: set[str] | None = None
    for layout in layouts:
        taken = taken_by(geometry, layout)
        fits = {p.name for p in geometry.profiles if taken and any(taken.fits(geometry, p, s) for s in p.placements)}
        common = fits if common is None else common & fits
    found = [profile for profile in geometry.profiles if profile.name in (common or ())]
    return max(found, key=size, default=None)


def options_of(device: Device, names: tuple[str, ...], most: Counts) -> tuple[Option, ...]:
    """Every useful option of a device for profiles, of each at most `most`; leaving it alone is not among them."""
    best: dict[Counts, Option] = {}
    for gone in _subsets(len(device.idle)):
        stay = [each for at, each in enumerate(device.idle) if at not in gone]
        for option in _made(device, names, most, gone, stay):
            known = best.get(option.serves)
            if any(option.serves) and (known is None or option.cost() < known.cost()):
                best[option.serves] = option
    return tuple(best.values())


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    for some in range(count + 1):
        yield from combinations(range(count), some)


def _made(
    device: Device, names: tuple[str, ...], most: Counts, gone: tuple[int, ...], stay: list[MigInstance]
) -> Iterator[Option]:
    """Options that delete exactly `gone`."""
    ready = tuple(min(sum(each.profile == name for each in stay), cap) for name, cap in zip(names, most, strict=True))
    room = tuple(cap - have for cap, have in zip(most, ready, strict=True))
    standing = arrangements(device.geometry, (*device.held, *stay))
    if not standing:
        return
    for made, (layout, later) in creations(device.geometry, standing, names, room).items():
        if gone and not any(made):
            continue  # deleting alone serves nobody
        serves = tuple(have + more for have, more in zip(ready, made, strict=True))
        yield Option(serves, made, gone, layout, later)


def creations(
    geometry: MigGeometry, standing: tuple[Layout, ...], names: tuple[str, ...], most: Counts
) -> dict[Counts, tuple[Layout | None, int]]:
    """Numbers of new instances -> where they go and how large a profile fits afterwards, at best.

    With several standing layouts only what fits beside each of them counts, and where it goes is not known.
    """
    if len(standing) == 1:
        taken = taken_by(geometry, standing[0])
        return dict(_creations(geometry, taken, names, most)) if taken else {}
    common: dict[Counts, tuple[Layout | None, int]] | None = None
    for layout in standing:
        taken = taken_by(geometry, layout)
        fits = _creations(geometry, taken, names, most) if taken else {}
        if common is None:
            common = {made: (None if any(made) else (), later) for made, (_, later) in fits.items()}
        else:
            common = {
                made: (where, min(later, fits[made][1])) for made, (where, later) in common.items() if made in fits
            }
    return common or {}


@lru_cache(maxsize=4096)
def _creations(
    geometry: MigGeometry, taken: Taken, names: tuple[str, ...], most: Counts
) -> dict[Counts, tuple[Layout, int]]:
    found: dict[Counts, tuple[Layout, int]] = {}
    kinds = [geometry.profile(name) for name in names]

    def grow(taken: Taken, made: Counts, layout: Layout, first: int) -> None:
        later = _later(geometry, taken)
        if made not in found or later > found[made][1]:
            found[made] = layout, later
        for start in range(first, geometry.memory_slices):
            for at, profile in enumerate(kinds):
                if profile is not None and made[at] < most[at] and taken.fits(geometry, profile, start):
                    more = (*made[:at], made[at] + 1, *made[at + 1 :])
                    grow(taken.plus(profile, start), more, (*layout, Slot(start, profile.name)), start + 1)

    grow(taken, (0,) * len(names), (), 0)
    return found


@lru_cache(maxsize=4096)
def _later(geometry: MigGeometry, taken: Taken) -> int:
    return max(
        (size(p) for p in geometry.profiles if any(taken.fits(geometry, p, start) for start in p.placements)),
        default=0,
    )
