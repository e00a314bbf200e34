"""From a demand of profiles and the devices at hand to one plan, with what it costs and what it cannot meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwatch.fit.mig import arrangements, mask, taken_by
from gpuwatch.model.catalogue import MigProfile
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.mig import AskAnswer, DeviceLayout, MigAsk, MigPlan, MigSpot
from gpuwatch.placement.mig.classes import Choice, DeviceClass, Problem, problem_of
from gpuwatch.placement.mig.devices import Device
from gpuwatch.placement.mig.exact import best_choice, bounds
from gpuwatch.placement.mig.greedy import greedy_choice
from gpuwatch.placement.mig.options import Option, largest, size

_TOLD_BLOCKERS = 5  # more held instances than this are no help to a reader


@dataclass(frozen=True, slots=True)
class _Use:
    """One device of the plan: what is made of it and what each ask gets there."""

    device: Device
    option: Option
    given: tuple[int, ...]  # parallel to the asks


def plan_layouts(
    asks: tuple[MigAsk, ...], devices: list[Device], left_out: dict[str, int] | None = None, *, exact: bool = True
) -> MigPlan:
    """The plan for `asks` on `devices`: the best one where that can be proven in time, else a greedy one with bounds.

    Held instances are never touched. `exact` False asks for the greedy plan.
    """
    problem = problem_of(asks, devices)
    choice = best_choice(problem) if exact else None
    method = "greedy" if choice is None else "exact"
    choice = choice or greedy_choice(problem)
    uses = [use for at, group in enumerate(problem.classes) for use in _uses(problem, at, group, choice)]
    layouts = tuple(_layout(problem, use) for use in sorted(uses, key=lambda use: (use.device.node, use.device.index)))
    met = choice.met(problem)
    lost = sum(layout.was_free for layout in layouts)
    most, fewest = (met, lost) if method == "exact" else bounds(problem, met)
    answers = tuple(_answer(problem, a, uses, devices, left_out or {}) for a in range(len(asks)))
    return MigPlan(
        answers=answers,
        devices=layouts,
        method=method,
        considered=len(devices),
        left_out=left_out or {},
        free_gpus_before=sum(device.free for device in devices),
        free_gpus_lost=lost,
        repartitioned=sum(bool(each.create or each.delete) for each in layouts),
        unmet=sum(answer.unmet for answer in answers),
        met_slices=met,
        most_met_slices=most,
        fewest_free_gpus_lost=fewest,
    )


def _uses(problem: Problem, at: int, group: DeviceClass, choice: Choice) -> Iterator[_Use]:
    """Gives the devices of a class, in order, their options, and shares out what the class meets.

    What nobody gets is not made: the option is then cut down to what is given.
    """
    left = [row[at] for row in choice.meets]
    wanted = [option for o, option in enumerate(group.options) for _ in range(choice.counts[at][o])]
    for device, option in zip(group.devices, sorted(wanted, key=lambda each: -sum(each.serves)), strict=False):
        supply = dict(zip(problem.profiles, option.serves, strict=True))
        given = [0] * len(left)
        for a, ask in enumerate(problem.asks):
            given[a] = min(left[a], supply[ask.profile])
            supply[ask.profile] -= given[a]
            left[a] -= given[a]
        if any(given):
            needed = [serves - supply[p] for p, serves in zip(problem.profiles, option.serves, strict=True)]
            enough = [o for o in group.options if all(has >= n for has, n in zip(o.serves, needed, strict=True))]
            yield _Use(device, min(enough, key=lambda o: (o.cost()[:2], sum(o.creates), -o.later)), tuple(given))


def _layout(problem: Problem, use: _Use) -> DeviceLayout:
    device, option, geometry = use.device, use.option, use.device.geometry
    serves = dict.fromkeys(problem.profiles, 0)
    for ask, given in zip(problem.asks, use.given, strict=True):
        serves[ask.profile] += given
    gone = {device.idle[at].id for at in option.delete}
    before = largest(geometry, arrangements(geometry, (*device.held, *device.idle)))
    after = next((profile for profile in geometry.profiles if size(profile) == option.later), None)
    return DeviceLayout(
        node=device.node,
        pool=device.pool,
        gpu_index=device.index,
        uuid=device.uuid,
        gpu_model=device.model,
        serves={profile: count for profile, count in serves.items() if count},
        keep=tuple(device.spot(each) for each in (*device.held, *device.idle) if each.id not in gone),
        delete=tuple(device.spot(device.idle[at]) for at in option.delete),
        create=_created(problem, use),
        enable_mig=device.enable_mig,
        drain=device.drain,
        was_free=device.free,
        largest_before=before.name if before else None,
        largest_after=after.name if after else None,
    )


def _created(problem: Problem, use: _Use) -> tuple[MigSpot, ...]:
    slices = {profile.name: profile.memory_slices for profile in use.device.geometry.profiles}
    if use.option.layout is not None:
        return tuple(
            MigSpot(profile=slot.profile, start=slot.start, memory_slices=slices[slot.profile])
            for slot in use.option.layout
        )
    return tuple(
        MigSpot(profile=profile, start=None, memory_slices=slices[profile])
        for profile, count in zip(problem.profiles, use.option.creates, strict=True)
        for _ in range(count)
    )


def _answer(problem: Problem, at: int, uses: list[_Use], devices: list[Device], left_out: dict[str, int]) -> AskAnswer:
    ask = problem.asks[at]
    created = ready = 0
    column = problem.profiles.index(ask.profile)
    for use in uses:
        # What stands ready goes to the asks in their order, as the devices were shared out.
        earlier = sum(given for a, given in enumerate(use.given[:at]) if problem.asks[a].profile == ask.profile)
        stands = use.option.serves[column] - use.option.creates[column]
        from_ready = min(use.given[at], max(0, stands - earlier))
        ready += from_ready
        created += use.given[at] - from_ready
    unmet = ask.count - ready - created
    reason, blocked = _why_unmet(problem, at, devices, left_out) if unmet else (None, ())
    return AskAnswer(ask=ask, ready=ready, created=created, unmet=unmet, reason=reason, blocked_by=blocked)


def _why_unmet(
    problem: Problem, at: int, devices: list[Device], left_out: dict[str, int]
) -> tuple[str, tuple[str, ...]]:
    ask = problem.asks[at]
    may = [d for group in problem.classes if group.takes[at] for d in group.devices if d.geometry.profile(ask.profile)]
    aside = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())
    told = f" (left out: {aside})" if aside else ""
    if not may:
        return f"of the {len(devices)} devices that may be cut, none that the job may use has this profile{told}", ()
    blocked = [(device, way) for device in may if (way := in_the_way(device, ask.profile))]
    reason = f"all {len(may)} devices with this profile are used up{told}"
    if blocked:
        reason = f"held instances stand in the way on {len(blocked)} of the {len(may)} devices with this profile{told}"
    lines = (
        f"{device.node} GPU {device.index}: instance {each.id} ({each.profile}"
        + (f" at {each.start}" if each.start is not None else "")
        + (f", held by {', '.join(each.held_by)})" if each.held_by else ", in use by somebody unknown)")
        for device, way in blocked
        for each in way
    )
    return reason, tuple(lines)[:_TOLD_BLOCKERS]


def in_the_way(device: Device, profile: str) -> tuple[MigSpot, ...]:
    """The fewest held instances that one more of `profile` would collide with; empty where it fits beside them all.

    Where starts are not told, or the compute slices are what lacks, every held instance is named.
    """
    wanted = device.geometry.profile(profile)
    standing = arrangements(device.geometry, device.held)
    if wanted is None or not device.held or not standing:
        return ()
    free = [taken_by(device.geometry, layout) for layout in standing]
    if any(
        all(taken is not None and taken.fits(device.geometry, wanted, at) for taken in free) for at in wanted.placements
    ):
        return ()
    hits = [[each for each in device.held if _collides(device, each, wanted, at)] for at in wanted.placements]
    fewest = min((hit for hit in hits if hit), key=len, default=list(device.held))
    known = all(each.placement_start is not None for each in device.held)
    return tuple(device.spot(each) for each in (fewest if known else device.held))


def _collides(device: Device, instance: MigInstance, wanted: MigProfile, start: int) -> bool:
    mine = device.geometry.profile(instance.profile)
    at = instance.placement_start
    return mine is not None and at is not None and bool(mask(mine, at) & mask(wanted, start))
