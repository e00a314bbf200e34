"""The GPUs of one node: the devices that series show and those that only the node object knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpuwatch.assemble.activity import activity, telemetry
from gpuwatch.assemble.devices import Device, Series, next_free
from gpuwatch.assemble.offer import Offer, device_slices, profile_slices
from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.model import catalogue
from gpuwatch.model.cluster import Activity, Gpu, MigInstance
from gpuwatch.model.observations import ScrapeTarget
from gpuwatch.model.snapshot import Finding
from gpuwatch.model.units import MIB

_HEALTH_FAIL = 20  # of the exporter's own health watch: 0 pass, 10 warn, 20 fail
_SLICE_ABSENT = {"utilization_ratio": "mig_slice", "power_watts": "mig_slice", "power_limit_watts": "mig_slice"}
_CUT_BOARD_ABSENT = {"utilization_ratio": "mig", "engine_active_ratio": "mig"}


@dataclass(frozen=True, slots=True)
class Measured:
    """What the read as a whole knows about windows and scrapes."""

    window_seconds: int | None
    scrapes: Mapping[ScrapeTarget, int]
    scrape_interval_seconds: float | None = None
    silent: Mapping[str, str] = field(default_factory=dict)  # node -> why its devices have no telemetry
    silent_default: str = "no_series"


def gpus_of(
    node: str, devices: list[Device], offer: Offer, held: set[int], measured: Measured, settings: AssembleSettings
) -> tuple[tuple[Gpu, ...], list[Finding]]:
    """All physical devices of a node, by index. `held`: indexes that a live pod is known to hold."""
    findings: list[Finding] = []
    answering = any(device.live for device in devices)
    gpus = [_seen(device, offer, answering, measured, settings) for device in devices]
    taken = {gpu.index for gpu in gpus}
    promised = offer.devices if offer.offered else offer.labelled
    absent = max(0, promised - len(gpus))
    lost = answering and offer.offered and offer.whole > 0
    gpus += [
        _unseen(next_free(taken), offer, node, lost=lost, answering=answering, measured=measured) for _ in range(absent)
    ]
    missing = sum("lost" in gpu.health_causes for gpu in gpus)
    if missing:
        detail = f"{missing} of {len(gpus)} devices are not seen by the exporter, which does see the others"
        findings.append(Finding(code="gpu_lost", severity="critical", subject=node, detail=detail))
    elif absent and answering:
        detail = f"the exporter shows {len(devices)} of {len(gpus)} devices; the others have no telemetry"
        findings.append(Finding(code="exporter_partial", severity="warning", subject=node, detail=detail))
    gpus = _with_slices(sorted(gpus, key=lambda gpu: gpu.index), offer)
    return tuple(_held_back(node, gpus, offer, held, findings)), findings


def _seen(device: Device, offer: Offer, answering: bool, measured: Measured, settings: AssembleSettings) -> Gpu:
    board, cut = device.board, bool(device.slices)
    absent = _CUT_BOARD_ABSENT if cut else {}
    readings = telemetry(board.now, absent) if device.live else None
    total = readings.memory_total_bytes if readings and not cut else None
    memory = total or offer.memory_bytes
    product = device.product or offer.product
    card = catalogue.match(product, memory / MIB if memory else None)
    causes = _causes(board.now, settings)
    if not device.live and answering:
        causes.append("lost")
    done: tuple[Activity | None, str | None] = (None, "mig") if cut else _activity(board, board, measured)
    return Gpu(
        index=device.index or 0,
        uuid=device.uuid,
        uuid_spellings=tuple(sorted(device.uuid_texts)) if device.uuid_texts != {device.uuid} else (),
        model=card.id if card else product,
        product=product,
        memory_total_bytes=memory or (card.memory_total_mib * MIB if card else None),
        health="unhealthy" if causes else "healthy" if device.live else "unknown",
        health_causes=tuple(causes),
        replicas=offer.replicas,
        mig_enabled=cut,
        mig_instances=tuple(
            _instance(device, mig_id, product, measured) for mig_id in sorted(device.slices, key=_order)
        ),
        telemetry=readings,
        telemetry_reason=None if readings else _silence(device.node, answering, measured),
        activity=done[0],
        activity_reason=done[1],
    )


def _causes(now: Mapping[str, float], settings: AssembleSettings) -> list[str]:
    causes = []
    if round(now.get("xid", 0)) in settings.fatal_xids:
        causes.append(f"xid_{round(now['xid'])}")
    if now.get("row_remap_failed", 0) > 0:
        causes.append("row_remap_failed")
    if now.get("health_status", 0) >= _HEALTH_FAIL:
        causes.append("health_watch_failed")
    return causes


def _silence(node: str, answering: bool, measured: Measured) -> str:
    return "lost" if answering else measured.silent.get(node, measured.silent_default)


def _activity(
    series: Series, board: Series, measured: Measured, slice_only: bool = False
) -> tuple[Activity | None, str | None]:
    return activity(
        series,
        board,
        window_seconds=measured.window_seconds,
        scrapes=measured.scrapes,
        scrape_interval_seconds=measured.scrape_interval_seconds,
        slice_only=slice_only,
    )


def _order(mig_id: str) -> tuple[int, str]:
    return (int(mig_id) if mig_id.isdecimal() else 0, mig_id)


def _instance(device: Device, mig_id: str, product: str | None, measured: Measured) -> MigInstance:
    part, profile = device.slices[mig_id], device.profiles.get(mig_id)
    compute, memory = profile_slices(profile, product) if profile else (1, 1)
    return MigInstance(
        id=mig_id,
        profile=profile or "unknown",
        compute_slices=compute,
        memory_slices=memory,
        telemetry=telemetry(part.now, _SLICE_ABSENT) if part.live else None,
        activity=_activity(part, device.board, measured, slice_only=True)[0],
    )


def _unseen(index: int, offer: Offer, node: str, *, lost: bool, answering: bool, measured: Measured) -> Gpu:
    """A device that only the node object knows: installed, and nothing else is known of it."""
    card = catalogue.match(offer.product, offer.memory_bytes / MIB if offer.memory_bytes else None)
    reason = "lost" if lost else "no_series" if answering else measured.silent.get(node, measured.silent_default)
    return Gpu(
        index=index,
        model=card.id if card else offer.product,
        product=offer.product,
        memory_total_bytes=offer.memory_bytes or (card.memory_total_mib * MIB if card else None),
        health="unhealthy" if lost else "unknown",
        health_causes=("lost",) if lost else (),
        replicas=offer.replicas,
        telemetry_reason=reason,
        activity_reason=reason,
    )


def _with_slices(gpus: list[Gpu], offer: Offer) -> list[Gpu]:
    """Adds the slices that the node offers and no series shows, onto devices that nothing says are whole."""
    shown = Counter(part.profile for gpu in gpus for part in gpu.mig_instances)
    todo = [name for name, count in offer.profiles.items() for _ in range(max(0, count - shown[name]))]
    if not todo:
        return gpus
    # Devices that live series show uncut are whole; of the others, as many as the node offers whole.
    whole_left = offer.whole - sum(gpu.telemetry is not None and not gpu.mig_enabled for gpu in gpus)
    out = []
    for gpu in gpus:
        if not gpu.mig_enabled and (gpu.telemetry is not None or whole_left > 0):
            whole_left -= gpu.telemetry is None
            out.append(gpu)
            continue
        parts = list(gpu.mig_instances)
        most = device_slices(offer.product)
        room = [most[0] - sum(p.compute_slices for p in parts), most[1] - sum(p.memory_slices for p in parts)]
        for profile in list(todo):
            compute, memory = profile_slices(profile, offer.product)
            if compute <= room[0] and memory <= room[1]:
                todo.remove(profile)
                room = [room[0] - compute, room[1] - memory]
                name = f"unseen-{len(parts)}"
                parts.append(MigInstance(id=name, profile=profile, compute_slices=compute, memory_slices=memory))
        out.append(replace(gpu, mig_enabled=bool(parts), mig_instances=tuple(parts)))
    return out


def _held_back(node: str, gpus: list[Gpu], offer: Offer, held: set[int], findings: list[Finding]) -> list[Gpu]:
    """Marks the devices that the device plugin does not offer: known bad ones first, then any, free ones first."""
    uncut = [gpu for gpu in gpus if not gpu.mig_enabled]
    if offer.offered and not offer.whole and not offer.profiles and uncut:
        short, why = len(uncut), "the node offers no GPU at all"
    else:
        short = min(len(uncut), offer.unhealthy)
        why = f"the node offers {offer.whole_allocatable} of {offer.whole} devices"
    gone = sum(offer.profiles.values()) - sum(offer.profiles_allocatable.values())
    if gone > 0:
        detail = f"the node offers {gone} slices fewer than it has; which ones, nobody says"
        findings.append(Finding(code="mig_slices_held_back", severity="warning", subject=node, detail=detail))
    guess = [gpu for gpu in uncut if gpu.health != "unhealthy"]
    guess.sort(key=lambda gpu: (gpu.index in held, gpu.telemetry is not None, -gpu.index))
    marked = {gpu.index for gpu in guess[: max(0, short - (len(uncut) - len(guess)))]}
    if marked:
        detail = (
            f"{why}; no series says which are bad, so device(s) {', '.join(map(str, sorted(marked)))} stand for them"
        )
        findings.append(Finding(code="device_held_back", severity="warning", subject=node, detail=detail))
    return [
        replace(gpu, health="unhealthy", health_causes=(*gpu.health_causes, "not_allocatable"))
        if gpu.index in marked
        else replace(gpu, health="healthy")
        if gpu.health == "unknown" and offer.offered and offer.whole
        else gpu
        for gpu in gpus
    ]
