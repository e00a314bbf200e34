"""From a choice among classes to single devices: what is made of each, and which ask gets what of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwatch.fit.mig import arrangements
from gpuwatch.model.mig import DeviceLayout, MigAsk, MigSpot
from gpuwatch.placement.mig.classes import Choice, DeviceClass, Problem
from gpuwatch.placement.mig.devices import Device
from gpuwatch.placement.mig.options import Option, largest, size


@dataclass(frozen=True, slots=True)
class Use:
    """One device of a plan. `ready` and `made` say, per ask, how many free instances and new ones it gets."""

    device: Device
    option: Option
    profiles: tuple[str, ...]  # what the option's counts are parallel to
    ready: dict[MigAsk, int]
    made: dict[MigAsk, int]

    def layout(self) -> DeviceLayout:
        """The device as the plan tells it."""
        device, option, geometry = self.device, self.option, self.device.geometry
        gone = {device.idle[at].id for at in option.delete}
        before = largest(geometry, arrangements(geometry, (*device.held, *device.idle)))
        after = next((profile for profile in geometry.profiles if size(profile) == option.later), None)
        serves = dict.fromkeys(self.profiles, 0)
        for given in (self.ready, self.made):
            for ask, count in given.items():
                serves[ask.profile] += count
        return DeviceLayout(
            node=device.node,
            pool=device.pool,
            gpu_index=device.index,
            uuid=device.uuid,
            gpu_model=device.model,
            serves={profile: count for profile, count in serves.items() if count},
            keep=tuple(device.spot(each) for each in (*device.held, *device.idle) if each.id not in gone),
            delete=tuple(device.spot(device.idle[at]) for at in option.delete),
            create=self.created(),
            enable_mig=device.enable_mig,
            drain=device.drain,
            was_free=device.free,
            largest_before=before.name if before else None,
            largest_after=after.name if after else None,
        )

    def created(self) -> tuple[MigSpot, ...]:
        """What is made; without starts where the driver chooses them."""
        slices = {profile.name: profile.memory_slices for profile in self.device.geometry.profiles}
        if self.option.layout is not None:
            places = [(slot.profile, slot.start) for slot in self.option.layout]
            return tuple(MigSpot(profile=name, start=at, memory_slices=slices[name]) for name, at in places)
        return tuple(
            MigSpot(profile=name, start=None, memory_slices=slices[name])
            for name, count in zip(self.profiles, self.option.creates, strict=True)
            for _ in range(count)
        )


def uses_of(problem: Problem, choice: Choice) -> list[Use]:
    """Every device that serves an ask."""
    return [use for at, group in enumerate(problem.classes) for use in _of_class(problem, at, group, choice)]


def _of_class(problem: Problem, at: int, group: DeviceClass, choice: Choice) -> Iterator[Use]:
    """Gives the devices of a class, in order, their options, and shares out what the class meets.

    What nobody gets is not made: the option is then cut down to what is given.
    """
    left = {ask: row[at] for ask, row in zip(problem.asks, choice.meets, strict=True)}
    wanted = [option for o, option in enumerate(group.options) for _ in range(choice.counts[at][o])]
    for device, option in zip(group.devices, sorted(wanted, key=lambda each: -sum(each.serves)), strict=False):
        supply = dict(zip(problem.profiles, option.serves, strict=True))
        given = {}
        for ask in problem.asks:
            given[ask] = min(left[ask], supply[ask.profile])
            supply[ask.profile] -= given[ask]
            left[ask] -= given[ask]
        if any(given.values()):
            needed = [serves - supply[p] for p, serves in zip(problem.profiles, option.serves, strict=True)]
            enough = [o for o in group.options if all(has >= n for has, n in zip(o.serves, needed, strict=True))]
            least = min(enough, key=lambda o: (o.cost()[:2], sum(o.creates), -o.later))
            yield _use(device, least, problem.profiles, given)


def _use(device: Device, option: Option, profiles: tuple[str, ...], given: dict[MigAsk, int]) -> Use:
    """What stands ready goes to the asks in their order."""
    stands = {p: serves - made for p, serves, made in zip(profiles, option.serves, option.creates, strict=True)}
    ready, made = {}, {}
    for ask, count in given.items():
        ready[ask] = min(count, stands[ask.profile])
        stands[ask.profile] -= ready[ask]
        made[ask] = count - ready[ask]
    return Use(device, option, profiles, ready, made)
