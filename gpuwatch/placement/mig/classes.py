"""Equal devices are one class with a size: what is chosen is how many of it become what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpuwatch.fit.mig import arrangements
from gpuwatch.model.mig import MigAsk
from gpuwatch.placement.mig.devices import Device
from gpuwatch.placement.mig.options import Counts, Option, largest, options_of, size


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """Devices that differ in name only, their options, and which asks they may serve (parallel to the asks)."""

    devices: tuple[Device, ...]
    options: tuple[Option, ...]
    takes: tuple[bool, ...]
    before: int  # size of the largest profile that fits beside all that stands on such a device now

    @property
    def drains(self) -> int:
        """1 when jobs would have to leave such a device first."""
        return int(bool(self.devices[0].drain))

    @property
    def enables(self) -> int:
        """1 when such a device is not in MIG mode."""
        return int(self.devices[0].enable_mig)

    @property
    def loses(self) -> int:
        """1 when such a device is wholly free."""
        return int(self.devices[0].free)

    @property
    def harm(self) -> tuple[int, int, int, int]:
        """What taking such a device costs others, worst first."""
        return self.drains, self.enables, self.loses, self.devices[0].tier_lost


@dataclass(frozen=True, slots=True)
class Problem:
    """The asks, the profiles that they name, the classes, and what one instance of each profile is worth."""

    asks: tuple[MigAsk, ...]
    profiles: tuple[str, ...]
    weights: Counts  # compute slices, parallel to profiles
    classes: tuple[DeviceClass, ...]

    def worth(self, ask: MigAsk) -> int:
        """What one instance of `ask` counts."""
        return self.weights[self.profiles.index(ask.profile)]


@dataclass(slots=True)
class Choice:
    """How many devices of each class become what, and how many instances of each ask a class meets."""

    counts: list[list[int]]  # class, option
    meets: list[list[int]]  # ask, class

    @classmethod
    def none(cls, problem: Problem) -> Choice:
        """Nothing is changed and nothing met."""
        return cls(
            [[0] * len(group.options) for group in problem.classes], [[0] * len(problem.classes) for _ in problem.asks]
        )

    def met(self, problem: Problem) -> int:
        """Compute slices of the demand that are met."""
        return sum(problem.worth(ask) * sum(row) for ask, row in zip(problem.asks, self.meets, strict=True))

    def cost(self, problem: Problem) -> tuple[int, ...]:
        """What is taken from others, worst first, then devices changed and instances deleted."""
        total = [0] * 6
        for group, row in zip(problem.classes, self.counts, strict=True):
            for option, count in zip(group.options, row, strict=True):
                each = (*group.harm, int(option.changed), len(option.delete))
                total = [sum_ + count * more for sum_, more in zip(total, each, strict=True)]
        return tuple(total)


def problem_of(asks: tuple[MigAsk, ...], devices: list[Device]) -> Problem:
    """Groups the devices and lists what could be made of each class."""
    profiles = tuple(dict.fromkeys(ask.profile for ask in asks))
    groups: dict[tuple[object, ...], list[Device]] = defaultdict(list)
    for device in devices:
        groups[device.likeness].append(device)
    classes = []
    for alike in groups.values():
        may = tuple(takes(alike[0], ask) for ask in asks)
        wanted = [sum(a.count for a, ok in zip(asks, may, strict=True) if ok and a.profile == p) for p in profiles]
        # A device has fewer slices than this of anything: the cap keeps equal questions equal.
        most = tuple(min(count, alike[0].geometry.compute_slices) for count in wanted)
        classes.append(DeviceClass(tuple(alike), options_of(alike[0], profiles, most), may, _before(alike[0])))
    return Problem(asks, profiles, weights_of(profiles, devices), tuple(classes))


def _before(device: Device) -> int:
    found = largest(device.geometry, arrangements(device.geometry, (*device.held, *device.idle)))
    return size(found) if found else 0


def takes(device: Device, ask: MigAsk) -> bool:
    """Whether the ask may use the device, whatever stands on it."""
    return ask.pool in (None, device.pool) and (not ask.gpu_models or device.model in ask.gpu_models)


def weights_of(profiles: tuple[str, ...], devices: list[Device]) -> Counts:
    """Compute slices of each profile; 1 for one that no device has."""
    known = {p.name: p.compute_slices for device in devices for p in device.geometry.profiles}
    return tuple(known.get(profile, 1) for profile in profiles)
