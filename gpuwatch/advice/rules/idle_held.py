"""idle_held: a job holds devices that did no work over a whole window. See docs/rules/idle_held.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from gpuwatch.advice import commands
from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.pricing import recoverable, severity
from gpuwatch.advice.queries import DeviceQueries
from gpuwatch.advice.risks import stop_risk
from gpuwatch.advice.rule import RULES, Outcome, recommendation_id
from gpuwatch.counting.idleness import HeldDevice, IdleVerdict
from gpuwatch.fit.booking import held_ratio, node_block_cause
from gpuwatch.fit.feasible import room
from gpuwatch.model.evaluation import Abstention, Confidence, Recommendation, Scalar, Subject
from gpuwatch.model.jobs import Job
from gpuwatch.model.units import MILLI, gib

_SIGNAL_CONFIDENCE = {"engine_active": 0.9, "utilization": 0.7}
_LOADED, _PARTIAL, _GUESSED = 0.7, 0.6, 0.6  # factors on the confidence


class IdleHeld:
    """Devices held without work, per job."""

    id = "idle_held"
    title = "A job holds devices and does no work on them"
    reads: ClassVar[dict[str, str]] = {
        "idle_window_seconds": "how long a device must have done nothing",
        "idle_peak_ratio": "activity peaks under this are no work",
        "idle_min_samples_ratio": "share of the window's samples that must have been seen",
        "warm_up_seconds": "younger jobs are not judged",
        "loaded_memory_ratio": "memory fuller than this means that something is resident",
        "checkpoint_unknown_lost_seconds": "work at risk when no checkpoint is known",
    }
    data: tuple[str, ...] = ("activity of every device over the window", "when the job started")

    def run(self, context: AdviceContext) -> Outcome:
        """Judges every job that holds a device."""
        found: list[Recommendation] = []
        passed: list[Abstention] = []
        for job in context.running:
            judged = context.verdict(job)
            why_not = _abstains(job, judged, context)
            if why_not is not None:
                passed.append(Abstention(rule=self.id, subject=job.id, reason=why_not[0], detail=why_not[1]))
            elif judged.idle_devices:
                found.append(_advice(job, judged, context))
        return Outcome(tuple(found), tuple(passed))


def _abstains(job: Job, judged: IdleVerdict, context: AdviceContext) -> tuple[str, str] | None:
    if judged.state == "unknown":
        return judged.reason, judged.detail
    idle = judged.idle_devices
    if not idle:
        return None
    if job.protected:
        return "protected", f"{len(idle)} idle device(s), and it asked not to be touched"
    if any(context.booking.nodes[d.node].node.gpus[d.position].health == "unhealthy" for d in idle):
        return "unhealthy_device", "an idle device of it is unhealthy: that is what to look at first"
    return None


def _advice(job: Job, judged: IdleVerdict, context: AdviceContext) -> Recommendation:
    idle = judged.idle_devices
    partial = len(idle) < len(judged.devices)
    queries = DeviceQueries(context.snapshot, context.booking, idle, judged.window_seconds)
    worth = recoverable(
        _gpus(idle, context),
        context.settings,
        watts=_watts(idle, context),
        no_watts="slice_of_a_board" if any(d.mig_instance for d in idle) else "no_power_reading",
    )
    nodes = list(dict.fromkeys(device.node for device in idle))
    unlocks = () if partial else context.unlocked(room(context.booking.nodes[n], frozenset((job.id,))) for n in nodes)
    subject = _subject(job, idle, nodes, context)
    note = f"idle for {judged.window_seconds} s or more at {context.snapshot.taken_at:%Y-%m-%dT%H:%MZ}"
    lines = commands.mark(job, "idle", note)
    return Recommendation(
        id=recommendation_id(IdleHeld.id, subject),
        rule=IdleHeld.id,
        severity=severity(worth.gpu_hours_per_week, unlocks=len(unlocks), lower=judged.loaded + partial),
        confidence=_confidence(judged, idle, partial),
        subject=subject,
        summary=_summary(job, judged, idle, partial, subject),
        recoverable=worth,
        risk=stop_risk(job, context, _disruption(judged, partial)),
        facts=_facts(judged, idle, nodes, context),
        commands=lines if partial else (*lines, *commands.stop(job, context.replicas(job))),
        evidence=(queries.peak(), queries.samples(), queries.memory(), *queries.power()),
        unlocks=unlocks,
        valid_until=context.snapshot.taken_at + timedelta(seconds=context.settings.recommendation_valid_seconds),
    )


def _share(device: HeldDevice, context: AdviceContext) -> float:
    """The part of a device that the hold is, 0..1.

    A device held twice over is shared out, so that no two pieces of advice promise the same capacity.
    """
    booked = context.booking.nodes[device.node]
    gpu, holds = booked.node.gpus[device.position], booked.holds[device.position]
    held = max(1.0, held_ratio(gpu, holds))
    if device.mig_instance is None:
        return max(0, device.milligpu) / MILLI / held
    claims = [hold for hold in holds if hold.mig_instance == device.mig_instance]
    return held_ratio(gpu, claims) / max(1, len(claims)) / held


def _gpus(idle: Sequence[HeldDevice], context: AdviceContext) -> dict[str | None, float]:
    gpus: dict[str | None, float] = defaultdict(float)
    for device in idle:
        gpus[context.booking.nodes[device.node].node.gpus[device.position].model] += _share(device, context)
    return dict(gpus)


def _watts(idle: Sequence[HeldDevice], context: AdviceContext) -> float | None:
    """Mean power of what is held; None when a device has no reading or is a slice of a board."""
    total = 0.0
    for device in idle:
        watts = device.measured.mean_power_watts
        if watts is None or device.mig_instance is not None:
            return None
        total += watts * _share(device, context)
    return total


def _confidence(judged: IdleVerdict, idle: Sequence[HeldDevice], partial: bool) -> Confidence:
    signal = min((d.measured.signal for d in idle), key=lambda name: _SIGNAL_CONFIDENCE.get(name, 0.0))
    number, words = _SIGNAL_CONFIDENCE.get(signal, 0.5), [f"{signal} on every device"]
    for holds, factor, word in (
        (judged.loaded, _LOADED, "memory is in use"),
        (partial, _PARTIAL, "the job works on its other devices"),
        (any(d.guessed for d in idle), _GUESSED, "which devices it holds is inferred"),
    ):
        if holds:
            number *= factor
            words.append(word)
    return Confidence(value=round(number, 2), basis="; ".join(words))


def _subject(job: Job, idle: Sequence[HeldDevice], nodes: list[str], context: AdviceContext) -> Subject:
    alone = nodes[0] if len(nodes) == 1 else None
    models = {context.booking.nodes[d.node].node.gpus[d.position].model for d in idle}
    pools = {context.booking.nodes[name].node.pool for name in nodes}
    return Subject(
        kind="job",
        name=job.id,
        node=alone,
        pool=min(pools) if len(pools) == 1 else None,
        gpu_model=next(iter(models)) if len(models) == 1 else None,
        tenant=job.tenant,
        gpus=tuple(sorted({d.gpu_index for d in idle})) if alone else (),
    )


def _summary(job: Job, judged: IdleVerdict, idle: Sequence[HeldDevice], partial: bool, subject: Subject) -> str:
    minutes = judged.window_seconds // 60
    held = f"{len(idle)} of {len(judged.devices)} held devices" if partial else f"all {len(idle)} held device(s)"
    where = f" on {subject.node}" if subject.node else ""
    lasted = f"{minutes} min" if minutes * 60 == judged.window_seconds else f"{judged.window_seconds} s"
    text = f"{job.id}: {held}{where} did no work for {lasted}"
    used = [d.measured.peak_memory_used_bytes or 0 for d in idle if d.measured.loaded]
    if judged.loaded and used:
        text += f", with {gib(max(used))} resident on one (a loaded model, a debugger or a leftover process)"
    return text


def _disruption(judged: IdleVerdict, partial: bool) -> str:
    if partial:
        return "none by itself: the owner shrinks the job at its next start"
    if judged.loaded:
        return "stops the job and unloads what is in memory; the next request or run waits for a new start"
    return "stops the job; nothing was running on its devices"


def _facts(
    judged: IdleVerdict, idle: Sequence[HeldDevice], nodes: list[str], context: AdviceContext
) -> dict[str, Scalar]:
    since = context.snapshot.taken_at - timedelta(seconds=judged.window_seconds)
    facts: dict[str, Scalar] = {
        "idle_devices": len(idle),
        "held_devices": len(judged.devices),
        "idle_since_at_latest": since.isoformat(),
        "window_seconds": judged.window_seconds,
        "loaded": judged.loaded,
    }
    for clause in judged.clauses:
        sign = ">=" if clause.at_least else "<"
        number = "unknown" if clause.value is None else f"{clause.value:g}"
        kept = "held" if clause.held else "not held"
        facts[f"{clause.name}_clause"] = f"{kept}: {number} {sign} {clause.bound:g} {clause.unit}"
    causes = {name: node_block_cause(context.booking.nodes[name].node) for name in nodes}
    blocked = sorted(f"{name} {cause}" for name, cause in causes.items() if cause)
    if blocked:
        facts["blocked_nodes"] = ", ".join(blocked)  # given back there, the devices are blocked, not free
    return facts


RULES.register(IdleHeld.id)(IdleHeld())
