"""Does a gang fit? By trying every node and every set of devices for every member, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from gpuwatch.fit.booking import Booking, node_block_cause
from gpuwatch.model.catalogue import card
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.units import MIB


@dataclass
class Place:
    """What one node can still give: per device its milligpu, and the ids of its free instances of the profile."""

    node: object
    left: list[int]
    instances: list[list[str]]
    cpu: int | None
    memory: int | None


def a_gang_fits(booking: Booking, request: PlacementRequest) -> bool:
    """All members of `request`, on devices that may take it; in one NVLink domain, on one generation, if it says so."""
    places = [_place(booked, request) for booked in booking.nodes.values() if node_block_cause(booked.node) is None]
    return _search(places, request, request.members, [])


def _place(booked, request: PlacementRequest) -> Place:
    held = [{hold.mig_instance for hold in holds} for holds in booked.holds]
    return Place(
        node=booked.node,
        left=list(booked.free_milligpu),
        instances=[
            [i.id for i in gpu.mig_instances if i.profile == request.shape.mig_profile and i.id not in mine]
            if gpu.health != "unhealthy"
            else []
            for gpu, mine in zip(booked.node.gpus, held, strict=True)
        ],
        cpu=booked.cpu_free_millicores,
        memory=booked.memory_free_bytes,
    )


def _search(places: list[Place], request: PlacementRequest, members: int, taken: list) -> bool:
    if members == 0:
        return _joined(taken, request)
    shape = request.shape
    for place in places:
        if place.cpu is not None and place.cpu < shape.cpu_millicores:
            continue
        if place.memory is not None and place.memory < shape.memory_bytes:
            continue
        for devices in _sets(place, request):
            _give(place, shape, devices, 1)
            found = _search(places, request, members - 1, [*taken, (place.node, devices)])
            _give(place, shape, devices, -1)
            if found:
                return True
    return False


def _sets(place: Place, request: PlacementRequest) -> Iterator[tuple[int, ...]]:
    shape = request.shape
    if shape.mig_profile:
        slots = [at for at, free in enumerate(place.instances) if _may(place, at, request) for _ in free]
        yield from set(combinations(slots, shape.gpus))
        return
    roomy = [at for at, left in enumerate(place.left) if left >= shape.milligpu_per_gpu and _may(place, at, request)]
    yield from combinations(roomy, shape.gpus)


def _give(place: Place, shape, devices: tuple[int, ...], sign: int) -> None:
    for at in devices:
        if shape.mig_profile and sign > 0:
            place.instances[at].pop()
        elif shape.mig_profile:
            place.instances[at].append("again")
        else:
            place.left[at] -= sign * shape.milligpu_per_gpu
    if place.cpu is not None:
        place.cpu -= sign * shape.cpu_millicores
    if place.memory is not None:
        place.memory -= sign * shape.memory_bytes


def _may(place: Place, at: int, request: PlacementRequest) -> bool:
    gpu, shape = place.node.gpus[at], request.shape
    if shape.gpu_models and gpu.model not in shape.gpu_models:
        return False
    if request.gpu_memory_bytes is None:
        return True
    known = card(gpu.model)
    memory = gpu.memory_total_bytes or (known.memory_total_mib * MIB if known else 0)
    return memory * shape.milligpu_per_gpu >= request.gpu_memory_bytes * 1000


def _joined(taken: list, request: PlacementRequest) -> bool:
    """Whether NVLink can join all devices, where that is asked for."""
    if not request.same_nvlink_domain or request.members * request.shape.gpus <= 1:
        return True
    domains = {node.nvlink_domain or ("node", node.name) for node, _ in taken}
    gpus = [node.gpus[at] for node, devices in taken for at in devices]
    known = [card(gpu.model) for gpu in gpus]
    if any(found is not None and found.nvlink_version is None for found in known):
        return False
    return len(domains) == 1 and len({c.generation if c else g.model for c, g in zip(known, gpus, strict=True)}) == 1
