"""Devices that name their holder: who that is, and the jobs of holders whose requests nobody publishes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from gpuwatch.assemble.devices import Device
from gpuwatch.assemble.jobs import Spot
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job, Member
from gpuwatch.model.observations import Holder
from gpuwatch.model.units import MILLI


def spots_of(devices: Mapping[str, list[Device]]) -> dict[Holder, list[Spot]]:
    """The devices and slices that name each pod now."""
    spots: dict[Holder, list[Spot]] = defaultdict(list)
    for node, mine in devices.items():
        for device in mine:
            index = device.index or 0
            for holder in device.board.holders:
                spots[holder].append(Spot(node, index))
            for mig_id, part in device.slices.items():
                for holder in part.holders:
                    spots[holder].append(Spot(node, index, mig_id, device.profiles.get(mig_id)))
    return dict(spots)


def jobs_of_holders(spots: Mapping[Holder, list[Spot]], pools: Mapping[str, str]) -> list[Job]:
    """Jobs of pods that are known by their devices alone: pods that share a device hold equal parts of it."""
    sharing = Counter((s.node, s.index) for held in spots.values() for s in held if s.mig_id is None)
    jobs = []
    for holder in sorted(spots, key=lambda h: (h.namespace, h.pod)):
        by_form: dict[tuple[str, str, int], list[Spot]] = defaultdict(list)
        for spot in sorted(set(spots[holder]), key=lambda s: (s.node, s.index, s.mig_id or "")):
            milligpu = 0 if spot.mig_id else MILLI // sharing[spot.node, spot.index]
            by_form[spot.node, spot.profile or "", milligpu].append(spot)
        for number, ((node, profile, milligpu), held) in enumerate(sorted(by_form.items())):
            name = holder.pod if number == 0 else f"{holder.pod}+{number}"
            shares = tuple(DeviceShare(gpu_index=s.index, milligpu=milligpu, mig_instance=s.mig_id) for s in held)
            shape = DemandShape(gpus=len(held), milligpu_per_gpu=milligpu or MILLI, mig_profile=profile or None)
            jobs.append(
                Job(
                    id=f"{holder.namespace}/{name}",
                    name=name,
                    shape=shape,
                    members=(Member(name=holder.pod, node=node, shares=shares, devices_known=True),),
                    tenant=holder.namespace,
                    pool=pools.get(node),
                )
            )
    return jobs
