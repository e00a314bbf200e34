"""A plan for a snapshot, or for empty devices of one card: checks what cannot be answered, then plans."""

from __future__ import annotations

from collections import defaultdict

from gpuwatch.errors import InputError
from gpuwatch.fit.booking import Booking, book
from gpuwatch.fit.mig import geometry_of
from gpuwatch.model.catalogue import MigGeometry, cards
from gpuwatch.model.mig import MigAsk, MigPlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.mig.asks import check_profiles
from gpuwatch.placement.mig.devices import Limits, devices_of, empty_devices
from gpuwatch.placement.mig.plan import plan_layouts


def plan_for(snapshot: ClusterSnapshot, asks: tuple[MigAsk, ...], limits: Limits) -> MigPlan:
    """The plan on the snapshot's own devices. InputError when none of them can be cut, or none has an asked profile.

    A profile that exists here only on devices that are left out is no error, nor is one that a waiting job asks for:
    the plan says why it is unmet.
    """
    booking = book(snapshot)
    here = _geometries(booking, limits)
    if not here:
        raise InputError(
            "there is no GPU here that MIG can cut",
            tried=f"{sum(len(b.node.gpus) for b in booking.nodes.values())} GPUs of {len(booking.nodes)} nodes"
            + (f", of model {', '.join(limits.gpu_models)}" if limits.gpu_models else "")
            + (f", in pool {', '.join(limits.pools)}" if limits.pools else ""),
            todo=f"name models and pools that stand here; cards that can be cut: {', '.join(_cuttable())}",
        )
    check_profiles((ask for ask in asks if not ask.jobs), here)
    devices, left_out = devices_of(booking, limits)
    return plan_layouts(asks, devices, left_out)


def plan_for_empty(model: str, count: int, asks: tuple[MigAsk, ...]) -> MigPlan:
    """The plan on `count` devices of one card with nothing on them. InputError for a card that cannot be cut."""
    devices = empty_devices(model, count)
    if not devices:
        raise InputError(
            f"MIG cannot cut a {model}, or no such card is known",
            tried="the GPU catalogue",
            todo=f"name one of: {', '.join(_cuttable())}",
        )
    check_profiles(asks, {model: [devices[0].geometry]})
    return plan_layouts(asks, devices)


def _cuttable() -> list[str]:
    return [card.id for card in cards().values() if card.mig is not None]


def _geometries(booking: Booking, limits: Limits) -> dict[str, list[MigGeometry]]:
    found: dict[str, dict[MigGeometry, None]] = defaultdict(dict)
    for booked in booking.nodes.values():
        for gpu in booked.node.gpus:
            geometry = geometry_of(gpu)
            wanted = not limits.gpu_models or gpu.model in limits.gpu_models
            if geometry is not None and wanted and (not limits.pools or booked.node.pool in limits.pools):
                found[gpu.model or ""][geometry] = None
    return {model: list(cuts) for model, cuts in found.items()}
