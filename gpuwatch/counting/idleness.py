"""The one judgment of idleness: is what a job holds working, measured idle, or unknown? Read by waterfall and advice.

Idle needs proof on every device of the job over a whole window; work needs one sample on one device; all else is
unknown. It must never turn a missing number into idleness.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from gpuwatch.counting.measure import Clause, DeviceMeasure, measure
from gpuwatch.fit.booking import BookedNode, Booking, Hold
from gpuwatch.model.cluster import Gpu
from gpuwatch.model.jobs import Job
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import MILLI
from gpuwatch.model.values import value

IdleState = Literal["active", "idle", "unknown"]


@value
class HeldDevice:
    """One device (or MIG instance) that the job holds, with its measured state and its counted state.

    `state` is what the waterfall counts: a device measured idle counts as unknown while the job has no verdict.
    """

    node: str
    position: int  # in node.gpus
    gpu_index: int
    mig_instance: str | None
    milligpu: int  # as booked; 0 for a MIG instance
    guessed: bool
    state: IdleState
    measured: DeviceMeasure


@value
class IdleVerdict:
    """What is known of one job's activity.

    state: active (work seen on a device of its own), idle (every device measured idle and every clause held), unknown.
    reason: measured_active, measured_idle, partly_idle, or why there is no verdict (warm_up, age_unknown, terminating,
    not_bound, devices_not_found, devices_unknown, shared_device, insufficient_samples, window_too_short,
    no_telemetry and what the source said).
    clauses: those that the verdict rests on, each with its number and bound; the worst device speaks for all.
    loaded: idle, but a large part of some device's memory is in use.
    """

    job_id: str
    state: IdleState
    reason: str
    detail: str = ""
    clauses: tuple[Clause, ...] = ()
    devices: tuple[HeldDevice, ...] = ()
    loaded: bool = False
    window_seconds: int = 0  # shortest window among the devices
    age_seconds: float | None = None

    @property
    def idle_devices(self) -> tuple[HeldDevice, ...]:
        """Devices counted as idle-held; some of them for a job that works on others, all of them for an idle job."""
        return tuple(device for device in self.devices if device.state == "idle")


def age_seconds(since: datetime | None, taken_at: datetime) -> float | None:
    """Seconds from `since` to `taken_at`; None when nobody said, or when one of them has no time zone."""
    if since is None or (since.tzinfo is None) != (taken_at.tzinfo is None):
        return None
    return (taken_at - since).total_seconds()


def verdict(job: Job, booking: Booking, taken_at: datetime, settings: AnalysisSettings) -> IdleVerdict:
    """Judges one job. Never raises on odd data: what cannot be judged is unknown, with its reason."""
    held = [row for node in _nodes_of(job) if node in booking.nodes for row in _measured(job, node, booking, settings)]
    if not held:
        return IdleVerdict(
            job_id=job.id, state="unknown", reason="not_bound", detail="it holds no device in the booking"
        )
    measures = [measured for *_, measured in held]
    age = age_seconds(job.started_at, taken_at)
    gates = _gates(job, age, settings)
    stopped = next((gate for gate in gates if not gate.held), None)
    doubt = next((m for m in measures if m.state in ("unknown", "shared")), None) or _not_booked(job, len(held))
    idle_counts = stopped is None and doubt is None
    devices = tuple(
        HeldDevice(
            node=node,
            position=at,
            gpu_index=booking.nodes[node].node.gpus[at].index,
            mig_instance=hold.mig_instance,
            milligpu=hold.milligpu,
            guessed=hold.guessed,
            state=_counted(measured, idle_counts),
            measured=measured,
        )
        for node, at, hold, measured in held
    )
    state, reason, detail = _sum_up(measures, stopped, doubt)
    return IdleVerdict(
        job_id=job.id,
        state=state,
        reason=reason,
        detail=detail,
        clauses=(*gates, *_worst(measures)),
        devices=devices,
        loaded=state == "idle" and any(m.loaded for m in measures),
        window_seconds=min(m.window_seconds for m in measures),
        age_seconds=age,
    )


def _nodes_of(job: Job) -> dict[str, None]:
    return dict.fromkeys(member.node for member in job.members if member.node is not None)


def _measured(
    job: Job, node: str, booking: Booking, settings: AnalysisSettings
) -> Iterator[tuple[str, int, Hold, DeviceMeasure]]:
    """(node, position, hold, measure) for all that the job holds on a node."""
    booked = booking.nodes[node]
    agreed: DeviceMeasure | None = None
    for at, holds in enumerate(booked.holds):
        for hold in holds:
            if hold.job.id != job.id:
                continue
            sharers = len({h.job.id for h in holds if h.mig_instance == hold.mig_instance})
            found = measure(booked.node.gpus[at], hold.mig_instance, sharers, settings)
            if hold.guessed and found.state != "unknown":
                agreed = agreed or _wherever_it_is(job, booked, settings)
                found = found if found.state == agreed.state else agreed
            yield node, at, hold, found


def _wherever_it_is(job: Job, booked: BookedNode, settings: AnalysisSettings) -> DeviceMeasure:
    """For a job of which nobody says where on the node it runs: a measure only if every place it may be at agrees.

    The booking's guess is good enough to count with, not to judge by: the job may work on the device beside.
    """
    shape = job.shape
    places: list[tuple[Gpu, str | None]] = []
    for gpu, holds in zip(booked.node.gpus, booked.holds, strict=True):
        known = [hold for hold in holds if not hold.guessed]
        if shape.mig_profile:
            taken = {hold.mig_instance for hold in known}
            places += [(gpu, i.id) for i in gpu.mig_instances if i.profile == shape.mig_profile and i.id not in taken]
        elif not gpu.mig_enabled and sum(hold.milligpu for hold in known) + shape.milligpu_per_gpu <= MILLI:
            places.append((gpu, None))
    sharers = 1 if shape.mig_profile or shape.milligpu_per_gpu == MILLI else 2
    found = [measure(gpu, instance, sharers, settings) for gpu, instance in places]
    if found and len({m.state for m in found}) == 1:
        return found[0]
    detail = f"nobody says which of {len(found)} devices it holds, and they differ"
    return DeviceMeasure(state="unknown", reason="devices_unknown", detail=detail)


def _not_booked(job: Job, held: int) -> DeviceMeasure | None:
    """A doubt when the job holds devices that the booking could not find: nobody measured those."""
    bound = [member for member in job.members if member.node is not None]
    expected = sum(len(member.shares) if member.devices_known else job.shape.gpus for member in bound)
    if held >= expected:
        return None
    return DeviceMeasure(state="unknown", reason="devices_not_found", detail=f"{held} of {expected} devices were found")


def _gates(job: Job, age: float | None, settings: AnalysisSettings) -> tuple[Clause, ...]:
    """What must hold of the job itself before idleness may be said."""
    floor = max(settings.warm_up_seconds, settings.idle_window_seconds)
    leaving = sum(member.terminating for member in job.members)
    return (
        Clause(
            name="terminating",
            failure="terminating",
            held=leaving == 0,
            value=float(leaving),
            bound=1.0,
            unit="members",
            at_least=False,
        ),
        Clause(
            name="age",
            failure="age_unknown" if age is None else "warm_up",
            held=age is not None and age >= floor,
            value=age,
            bound=float(floor),
            unit="seconds",
        ),
    )


def _counted(measured: DeviceMeasure, idle_counts: bool) -> IdleState:
    if measured.state in ("active", "shared"):
        return "active"  # the device does work, whoever of its holders does it
    return "idle" if measured.state == "idle" and idle_counts else "unknown"


def _sum_up(
    measures: list[DeviceMeasure], stopped: Clause | None, doubt: DeviceMeasure | None
) -> tuple[IdleState, str, str]:
    states = [m.state for m in measures]
    if "active" in states:
        idle = states.count("idle")
        if idle and stopped is None and doubt is None:
            return "active", "partly_idle", f"{idle} of {len(states)} devices did no work in their window"
        return "active", "measured_active", "work was seen on a device that it holds alone"
    if doubt is not None:
        return "unknown", doubt.reason, doubt.detail
    if stopped is not None:
        told = "nobody says when it started" if stopped.value is None else f"{stopped.value:g} {stopped.unit}"
        return "unknown", stopped.failure, f"{told}; bound {stopped.bound:g}"
    return "idle", "measured_idle", f"no device of {len(states)} did work in its window"


def _worst(measures: list[DeviceMeasure]) -> tuple[Clause, ...]:
    """One clause per name: the first that did not hold, else the one nearest to failing."""
    worst: dict[str, Clause] = {}
    for measured in measures:
        for clause in measured.clauses:
            known = worst.get(clause.name)
            if known is None or (clause.held, -clause.strain) < (known.held, -known.strain):
                worst[clause.name] = clause
    return tuple(worst.values())
