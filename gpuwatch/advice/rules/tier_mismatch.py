"""tier_mismatch: a job keeps a high-tier card lightly busy, and a lower-tier card here would hold it.

See docs/rules/tier_mismatch.md.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from gpuwatch.advice import commands
from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.pricing import gpu_hour_price, recoverable, severity
from gpuwatch.advice.queries import DeviceQueries
from gpuwatch.advice.risks import stop_risk
from gpuwatch.advice.rule import RULES, Outcome, recommendation_id
from gpuwatch.counting.idleness import HeldDevice, IdleVerdict
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.feasible import Room, room, spots, start_all, take
from gpuwatch.model.catalogue import Card, card
from gpuwatch.model.evaluation import Abstention, Command, Confidence, Recommendation, Recoverable, Scalar, Subject
from gpuwatch.model.jobs import Job
from gpuwatch.model.units import MIB, MILLI, WEEK_HOURS, gib

_STEP_SPEED = 2.0  # assumed: a card one tier lower does the same work in twice the time
_BUSY_CEILING = 0.8  # on the lower card, the work must not fill more than this
_CONFIDENCE = {"engine_active": 0.7, "utilization": 0.4}  # utilization is time, not amount: it hides how little is used
_ASKED_FOR = 0.6  # factor when the job names the card that it runs on


@dataclass(frozen=True, slots=True)
class _Found:
    """A lower card that would hold the job, and the label by which its nodes are chosen (None: nobody says)."""

    card: Card
    product: str | None
    projected_ratio: float
    memory_bytes: int


class TierMismatch:
    """Light work on a high-tier card."""

    id = "tier_mismatch"
    title = "A job leaves a high-tier card mostly idle, and a lower-tier card of this cluster would hold it"
    reads: ClassVar[dict[str, str]] = {
        "tier_mean_ratio": "a job whose busiest device has a higher mean earns its card",
        "tier_memory_margin_ratio": "memory of the lower card must exceed the peak seen by this factor",
        "idle_window_seconds": "shortest window that a mean may rest on",
        "idle_min_samples_ratio": "share of the window's samples that must have been seen",
        "warm_up_seconds": "younger jobs are not judged",
        "gpu_hour_price": "the saving is the difference of two prices",
    }
    data: tuple[str, ...] = ("mean activity and peak memory of every device over the window", "catalogue cards")

    def run(self, context: AdviceContext) -> Outcome:
        """Judges every job that holds whole devices of a card above the lowest tier installed."""
        installed = _installed(context.booking)
        lowest = min((known.placement_tier for known, _ in installed.values()), default=0)
        found: list[tuple[Job, IdleVerdict, Card, float, _Found]] = []
        passed: list[Abstention] = []
        for job in context.running:
            judged = context.verdict(job)
            own = _own_card(judged, context)
            if own is None or own.placement_tier <= lowest or judged.state == "idle":
                continue
            why_not = _abstains(job, judged, context)
            if why_not is not None:
                passed.append(Abstention(rule=self.id, subject=job.id, reason=why_not[0], detail=why_not[1]))
                continue
            busiest = max(d.measured.mean_ratio or 0.0 for d in judged.devices)
            if busiest >= context.settings.tier_mean_ratio:
                continue
            target = _target(job, judged, own, busiest, installed, context)
            if target is not None:
                found.append((job, judged, own, busiest, target))
        found.sort(key=lambda one: (-len(one[1].devices), one[0].id))
        free = _FreeCards(context)
        return Outcome(tuple(_advice(*one, free.claim(one[0], one[-1].card), context) for one in found), tuple(passed))


class _FreeCards:
    """What is free of the lower cards. Who is advised first claims it: the same free card is not offered twice."""

    def __init__(self, context: AdviceContext) -> None:
        self._rooms: dict[tuple[str, str], list[Room]] = defaultdict(list)  # pool, model -> nodes that have some free
        for place in context.shapes.rooms.values():
            trial = place.copy()
            gpus = zip(place.node.gpus, place.free_milligpu, strict=True)
            for model in sorted({gpu.model for gpu, free in gpus if gpu.model and free == MILLI}):
                self._rooms[place.node.pool, model].append(trial)

    def claim(self, job: Job, lower: Card) -> bool:
        """Whether the whole job could start on free ones now, all in one pool; takes them if so."""
        shape = replace(job.shape, gpu_models=(lower.id,))
        for pool, model in sorted(self._rooms):
            places = self._rooms[pool, model] if model == lower.id else []
            chosen = start_all(places, shape, len(job.members))
            if chosen is None:
                continue
            for place in places:
                for _ in range(chosen.get(place.node.name, 0)):
                    where = spots(place, shape)
                    if where is not None:
                        take(place, shape, where)
            return True
        return False


def _installed(booking: Booking) -> dict[str, tuple[Card, str | None]]:
    """Catalogue id -> (card, product label) of every card that stands here on a device that is not unhealthy."""
    out: dict[str, tuple[Card, str | None]] = {}
    for booked in booking.nodes.values():
        label = booked.node.labels.get("nvidia.com/gpu.product")
        for gpu in booked.node.gpus:
            known = card(gpu.model)
            if known and known.id not in out and gpu.health != "unhealthy" and not gpu.mig_enabled:
                out[known.id] = known, label or (gpu.product.replace(" ", "-") if gpu.product else None)
    return out


def _own_card(judged: IdleVerdict, context: AdviceContext) -> Card | None:
    """The one catalogue card that all the job's devices are; None for slices, mixed or unknown cards."""
    gpus = [context.booking.nodes[d.node].node.gpus[d.position] for d in judged.devices]
    models = {gpu.model for gpu in gpus}
    if len(models) != 1 or any(gpu.mig_enabled for gpu in gpus):
        return None
    return card(models.pop())


def _abstains(job: Job, judged: IdleVerdict, context: AdviceContext) -> tuple[str, str] | None:
    """Work on every device must be measured over a whole window, with its memory."""
    clauses = {clause.name: clause for clause in judged.clauses}
    for name in ("terminating", "age", "window", "samples"):
        if name in clauses and not clauses[name].held:
            return clauses[name].failure, judged.detail
    if any(d.measured.state == "unknown" for d in judged.devices):
        doubt = next(d.measured for d in judged.devices if d.measured.state == "unknown")
        return doubt.reason, doubt.detail
    if judged.reason == "devices_not_found":
        return judged.reason, judged.detail
    if any(d.guessed for d in judged.devices):
        return "devices_unknown", "nobody says which devices it holds"
    if any(d.milligpu < MILLI for d in judged.devices) or any(d.measured.state == "shared" for d in judged.devices):
        return "shared_device", "what one job does on a shared device is not known"
    if any(context.booking.nodes[d.node].node.gpus[d.position].health == "unhealthy" for d in judged.devices):
        return "unhealthy_device", "a device of it is unhealthy: that is what to look at first"
    if judged.idle_devices:
        return "partly_idle", "some of its devices are idle-held: giving those back comes first"
    if any(d.measured.mean_ratio is None for d in judged.devices):
        return "no_mean_activity", "the mean of a device is not known"
    if any(d.measured.peak_memory_used_bytes is None for d in judged.devices):
        return "memory_unknown", "peak memory of a device is not known"
    return ("protected", "it asked not to be touched") if job.protected else None


def _target(
    job: Job,
    judged: IdleVerdict,
    own: Card,
    busiest: float,
    installed: dict[str, tuple[Card, str | None]],
    context: AdviceContext,
) -> _Found | None:
    """The lowest card that holds the job's memory with margin, its pace and its need of NVLink."""
    needed = context.settings.tier_memory_margin_ratio * _peak_memory(judged)
    linked = len(judged.devices) > 1 and own.nvlink_version is not None
    fitting = []
    for lower, product in installed.values():
        steps = own.placement_tier - lower.placement_tier
        projected = busiest * _STEP_SPEED**steps
        holds = lower.memory_total_mib * MIB >= needed and (lower.nvlink_version is not None or not linked)
        if steps > 0 and holds and projected <= _BUSY_CEILING:
            fitting.append(_Found(lower, product, projected, lower.memory_total_mib * MIB))
    return min(fitting, key=lambda f: (f.card.placement_tier, f.memory_bytes, f.card.id), default=None)


def _peak_memory(judged: IdleVerdict) -> int:
    return max(d.measured.peak_memory_used_bytes or 0 for d in judged.devices)


def _advice(
    job: Job,
    judged: IdleVerdict,
    own: Card,
    busiest: float,
    target: _Found,
    startable: bool,
    context: AdviceContext,
) -> Recommendation:
    devices = judged.devices
    queries = DeviceQueries(context.snapshot, context.booking, devices, judged.window_seconds)
    worth = _worth(own, target.card, len(devices), context)
    nodes = list(dict.fromkeys(d.node for d in devices))
    unlocks = context.unlocked(room(context.booking.nodes[n], frozenset((job.id,))) for n in nodes) if startable else ()
    subject = Subject(
        kind="job",
        name=job.id,
        node=nodes[0] if len(nodes) == 1 else None,
        pool=context.booking.nodes[nodes[0]].node.pool,
        gpu_model=own.id,
        tenant=job.tenant,
        gpus=tuple(sorted(d.gpu_index for d in devices)) if len(nodes) == 1 else (),
    )
    memory = _peak_memory(judged)
    facts: dict[str, Scalar] = {
        "devices": len(devices),
        "mean_activity_ratio": busiest,
        "projected_activity_ratio": round(target.projected_ratio, 3),
        "peak_memory_bytes": memory,
        "target_card": target.card.id,
        "target_memory_bytes": target.memory_bytes,
        "target_pools": ", ".join(sorted(_pools_with(target.card, context))),
        "target_free_now": startable,
        "window_seconds": judged.window_seconds,
    }
    return Recommendation(
        id=recommendation_id(TierMismatch.id, subject),
        rule=TierMismatch.id,
        severity=severity(worth.gpu_hours_per_week, unlocks=len(unlocks), lower=1 + (not startable)),
        confidence=_confidence(job, devices, own),
        subject=subject,
        summary=(
            f"{job.id}: {len(devices)} x {own.id} at {busiest:.0%} mean activity and at most {gib(memory)} each; "
            f"{target.card.id} would hold it"
        ),
        recoverable=worth,
        risk=stop_risk(job, context, f"one restart; the same work takes longer on {target.card.id}"),
        facts=facts,
        commands=_commands(job, target, context),
        evidence=(queries.mean(), queries.memory(), *queries.power()),
        unlocks=unlocks,
        valid_until=context.snapshot.taken_at + timedelta(seconds=context.settings.recommendation_valid_seconds),
    )


def _commands(job: Job, target: _Found, context: AdviceContext) -> tuple[Command, ...]:
    if target.product is None:
        return commands.mark(job, "suggested-card", target.card.id)
    return commands.on_other_card(job, target.product, context.replicas(job))


def _worth(own: Card, lower: Card, count: int, context: AdviceContext) -> Recoverable:
    """High-tier devices given back; their cost less the cost of the lower ones. Energy there was never measured."""
    gross = recoverable({own.id: float(count)}, context.settings, no_watts="power_on_the_other_card_unknown")
    worth = replace(gross, exchanged=True)
    high, low = (gpu_hour_price(c.id, context.settings) for c in (own, lower))
    if high is None or low is None:
        return worth
    saved = round((high - low) * count * WEEK_HOURS, 2)
    if saved > 0:
        return replace(worth, cost=saved)
    return replace(worth, cost=None, currency=None, missing={**worth.missing, "cost": "no_price_difference"})


def _pools_with(lower: Card, context: AdviceContext) -> set[str]:
    return {
        booked.node.pool
        for booked in context.booking.nodes.values()
        if any(
            card(gpu.model) is lower and gpu.health != "unhealthy" and not gpu.mig_enabled for gpu in booked.node.gpus
        )
    }


def _confidence(job: Job, devices: tuple[HeldDevice, ...], own: Card) -> Confidence:
    signals = {d.measured.signal for d in devices}
    signal = "engine_active" if signals == {"engine_active"} else "utilization"
    number, words = _CONFIDENCE[signal], [f"{signal} over the window; speed of the lower card is assumed"]
    if own.id in job.shape.gpu_models:
        number *= _ASKED_FOR
        words.append("the job names the card that it runs on")
    return Confidence(value=round(number, 2), basis="; ".join(words))


RULES.register(TierMismatch.id)(TierMismatch())
