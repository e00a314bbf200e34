"""Why a part of the demand has no place, and which held instances stand there."""

from __future__ import annotations

from gpuwatch.fit.mig import arrangements, mask, taken_by
from gpuwatch.model.catalogue import MigProfile
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.mig import MigAsk, MigSpot
from gpuwatch.placement.mig.classes import takes
from gpuwatch.placement.mig.devices import Device

_TOLD_BLOCKERS = 5  # more held instances than this are no help to a reader


def why_unmet(ask: MigAsk, devices: list[Device], left_out: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    """The reason in words, and the held instances in the way, at most five."""
    may = [device for device in devices if takes(device, ask) and device.geometry.profile(ask.profile)]
    aside = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())
    told = f" (left out: {aside})" if aside else ""
    if not may:
        return f"of the {len(devices)} devices that may be cut, none that the job may use has this profile{told}", ()
    blocked = [(device, way) for device in may if (way := in_the_way(device, ask.profile))]
    if blocked:
        reason = f"held instances stand in the way on {len(blocked)} of the {len(may)} devices with this profile{told}"
    elif ask.together > 1:
        reason = f"no node has room for {ask.together} of them together on what is left of {len(may)} devices{told}"
    else:
        reason = f"all {len(may)} devices with this profile are used up{told}"
    lines = (_words(device, each) for device, way in blocked for each in way)
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
    if any(all(taken and taken.fits(device.geometry, wanted, at) for taken in free) for at in wanted.placements):
        return ()
    hits = [[each for each in device.held if _collides(device, each, wanted, at)] for at in wanted.placements]
    fewest = min((hit for hit in hits if hit), key=len, default=list(device.held))
    known = all(each.placement_start is not None for each in device.held)
    return tuple(device.spot(each) for each in (fewest if known else device.held))


def _collides(device: Device, instance: MigInstance, wanted: MigProfile, start: int) -> bool:
    mine = device.geometry.profile(instance.profile)
    at = instance.placement_start
    return mine is not None and at is not None and bool(mask(mine, at) & mask(wanted, start))


def _words(device: Device, spot: MigSpot) -> str:
    place = "" if spot.start is None else f" at {spot.start}"
    who = f"held by {', '.join(spot.held_by)}" if spot.held_by else "no holder known, not known to be idle"
    return f"{device.node} GPU {device.index}: instance {spot.id} ({spot.profile}{place}, {who})"
