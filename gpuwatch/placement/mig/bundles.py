"""Asks of several instances at a time on one node: one bundle after the other, each on the node that it harms least."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.mig import DeviceLayout, MigAsk
from gpuwatch.placement.mig.classes import problem_of
from gpuwatch.placement.mig.devices import Device
from gpuwatch.placement.mig.greedy import greedy_choice
from gpuwatch.placement.mig.uses import Use, uses_of

_Alike = frozenset[tuple[tuple[object, ...], int]]

_NEW = "new-"  # ids of instances that the plan makes; the driver's own are numbers


def place_bundles(asks: tuple[MigAsk, ...], devices: list[Device]) -> tuple[list[Use], list[Device]]:
    """The uses of all bundles that find a node, and the devices as these leave them (what a bundle gets is held)."""
    nodes: dict[str, list[Device]] = defaultdict(list)
    for device in devices:
        nodes[device.node].append(device)
    alike = {name: _alike(mine) for name, mine in nodes.items()}
    found: list[Use] = []
    for ask in asks:
        one = replace(ask, count=ask.together, together=1)
        known: dict[_Alike, tuple[str, list[Use] | None]] = {}
        for _ in range(ask.count // ask.together):
            uses = _best_node(one, nodes, alike, known)
            if uses is None:
                break
            found += [_for(ask, use) for use in uses]
            changed = {use.device.index: _after(use, len(found)) for use in uses}
            name = uses[0].device.node
            nodes[name] = [changed.get(device.index, device) for device in nodes[name]]
            alike[name] = _alike(nodes[name])
    return found, [device for mine in nodes.values() for device in mine]


def merge(layouts: Iterable[DeviceLayout]) -> list[DeviceLayout]:
    """One layout per device, by node and index; `layouts` in the order in which they were made."""
    merged: dict[tuple[str, int], DeviceLayout] = {}
    for later in layouts:
        key = later.node, later.gpu_index
        first = merged.get(key)
        merged[key] = later if first is None else _joined(first, later)
    return [merged[key] for key in sorted(merged)]


def _joined(first: DeviceLayout, later: DeviceLayout) -> DeviceLayout:
    return replace(
        first,
        serves={p: first.serves.get(p, 0) + later.serves.get(p, 0) for p in (*first.serves, *later.serves)},
        keep=tuple(spot for spot in later.keep if not (spot.id or "").startswith(_NEW)),
        delete=(*first.delete, *later.delete),
        create=(*first.create, *later.create),
        largest_after=later.largest_after,
    )


def _alike(devices: list[Device]) -> _Alike:
    """Equal for nodes with the same devices."""
    return frozenset(Counter(device.likeness for device in devices).items())


def _best_node(
    ask: MigAsk,
    nodes: dict[str, list[Device]],
    alike: dict[str, _Alike],
    known: dict[_Alike, tuple[str, list[Use] | None]],
) -> list[Use] | None:
    """How the least harmed node serves the whole bundle; None when none can. Equal nodes are looked at once.

    `known`: answers of earlier bundles of the same ask, good as long as their node has not changed.
    """
    first = {key: name for name, key in reversed(alike.items())}
    served = []
    for key, name in first.items():
        if known.get(key, ("", None))[0] != name:
            known[key] = name, _on_node(ask, nodes[name])
        uses = known[key][1]
        if uses is not None:
            served.append((_harm(uses), name, uses))
    best = min(served, key=lambda each: each[:2], default=None)
    return best[2] if best else None


def _on_node(ask: MigAsk, devices: list[Device]) -> list[Use] | None:
    problem = problem_of((ask,), devices)
    choice = greedy_choice(problem)
    return uses_of(problem, choice) if sum(map(sum, choice.meets)) == ask.count else None


def _harm(uses: list[Use]) -> tuple[int, int, int, int, int, int]:
    return (
        sum(bool(use.device.drain) for use in uses),
        sum(use.device.enable_mig for use in uses),
        sum(use.device.free for use in uses),
        sum(use.device.tier_lost for use in uses),
        sum(use.option.changed for use in uses),
        sum(len(use.option.delete) for use in uses),
    )


def _for(ask: MigAsk, use: Use) -> Use:
    """The use, told for the whole ask."""
    return replace(use, ready={ask: sum(use.ready.values())}, made={ask: sum(use.made.values())})


def _after(use: Use, number: int) -> Device:
    """The device after the bundle: what it got is held from now on."""
    device = use.device
    slices = {profile.name: profile.compute_slices for profile in device.geometry.profiles}
    gone = {device.idle[at].id for at in use.option.delete}
    stay = [each for each in device.idle if each.id not in gone]
    taken: list[MigInstance] = []
    for ask, count in use.ready.items():
        taken += [each for each in stay if each.profile == ask.profile][:count]
    made = [
        MigInstance(
            id=f"{_NEW}{number}-{at}",
            profile=spot.profile,
            compute_slices=slices[spot.profile],
            memory_slices=spot.memory_slices,
            placement_start=spot.start,
        )
        for at, spot in enumerate(use.created())
    ]
    return replace(
        device,
        held=(*device.held, *taken, *made),
        idle=tuple(each for each in stay if each not in taken),
        enable_mig=False,
        drain=(),
    )
