"""The simulated cluster at any moment: a pure function of (seed, scale, anchor, now)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from gpuwatch.model.history import History
from gpuwatch.model.jobs import Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth
from gpuwatch.simulate.behavior import BEHAVIORS, Behavior
from gpuwatch.simulate.demand import demanded_gpus, history
from gpuwatch.simulate.fleet import build
from gpuwatch.simulate.layout import Layout, Slot
from gpuwatch.simulate.telemetry import DeviceLoad, observe

DEFAULT_TAKEN_AT = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday noon, so that a run without a date repeats
CLUSTER = "demo"
_CHECKPOINT_EVERY_SECONDS = 5400
_QUEUED_RATIO = 0.4  # a cycling job waits for the last part of the pause before it runs
_XIDS = {"xid_48": 48, "xid_31": 31}


@dataclass(frozen=True, slots=True)
class Simulated:
    """One moment. `planted` maps each case made on purpose to its subjects: job ids, node names, node/device."""

    snapshot: ClusterSnapshot
    history: History
    planted: dict[str, tuple[str, ...]]
    seed: int
    scale: int
    anchor_at: datetime  # the moment on which ages and rhythms are counted


def simulate(seed: int = 7, taken_at: datetime | None = None, scale: int = 1) -> Simulated:
    """The cluster at `taken_at` (aware; DEFAULT_TAKEN_AT when None). Equal arguments give equal values everywhere.

    scale: copies of the plan (39 nodes, 276 GPUs each); below 1 is a ValueError.
    """
    at = DEFAULT_TAKEN_AT if taken_at is None else taken_at
    if scale < 1:
        raise ValueError("scale counts whole copies of the plan: 1 or more")
    if at.tzinfo is None:
        raise ValueError("taken_at needs a time zone")
    return _moment(seed, scale, at.astimezone(UTC), at.astimezone(UTC))


def advance(simulated: Simulated, seconds: float) -> Simulated:
    """The same cluster `seconds` later (or earlier): jobs come and go, readings move; the planted cases stay."""
    now = simulated.snapshot.taken_at + timedelta(seconds=seconds)
    return _moment(simulated.seed, simulated.scale, simulated.anchor_at, now)


@lru_cache(maxsize=4)
def _layout(seed: int, scale: int) -> Layout:
    return build(seed, scale)


@lru_cache(maxsize=8)
def _level(seed: int, scale: int, anchor: datetime) -> dict[tuple[str, str], float]:
    layout = _layout(seed, scale)
    jobs = [job for slot in layout.slots if (job := _job(slot, anchor, anchor))]
    return demanded_gpus(jobs, {name: node.pool for name, node in layout.nodes.items()})


def _moment(seed: int, scale: int, anchor: datetime, now: datetime) -> Simulated:
    layout = _layout(seed, scale)
    alive = [(slot, job) for slot in layout.slots if (job := _job(slot, anchor, now))]
    loads = _loads(layout, alive)
    nodes = tuple(observe(node, loads.get(name, {}), seed, now) for name, node in layout.nodes.items())
    snapshot = ClusterSnapshot(
        cluster=CLUSTER,
        taken_at=now,
        nodes=nodes,
        jobs=(*(job for _, job in alive), *_finished(layout, now)),
        sources=(SourceHealth(name=f"generated (seed {seed})", kind="generated", ok=True, observed_at=now),),
    )
    return Simulated(
        snapshot=snapshot,
        history=history(seed, _level(seed, scale, anchor), anchor, now),
        planted={case: tuple(subjects) for case, subjects in sorted(layout.planted.items())},
        seed=seed,
        scale=scale,
        anchor_at=anchor,
    )


def _job(slot: Slot, anchor: datetime, now: datetime) -> Job | None:
    """The slot's job at `now`; None in the pause of a cycling slot."""
    age = slot.age_seconds + (now - anchor).total_seconds()
    name, phase, members, turn = slot.name, slot.phase, slot.members, 0.0
    if slot.cycle is not None:
        turn, age = divmod(age, slot.cycle.period_seconds)
        run = slot.cycle.busy_ratio * slot.cycle.period_seconds
        if age >= run:
            wait = age - slot.cycle.period_seconds * (1 - (1 - slot.cycle.busy_ratio) * _QUEUED_RATIO)
            if wait < 0:
                return None
            phase, age, turn = "pending", wait, turn + 1
        name = f"{slot.name}-r{int(turn)}"
        members = tuple(replace(m, name=f"{name}-{i}") for i, m in enumerate(members))
        if phase == "pending":
            members = tuple(replace(m, node=None, shares=(), devices_known=False) for m in members)
    began = now - timedelta(seconds=age)
    running = phase == "running"
    return Job(
        id=f"{slot.tenant}/{name}",
        name=name,
        shape=slot.shape,
        members=members,
        tenant=slot.tenant,
        kind=slot.kind,
        phase=phase,
        priority=slot.priority,
        pool=slot.pool,
        owner=slot.owner if slot.cycle is None else f"{slot.owner.split('/')[0]}/{name}",
        pending_reason=slot.pending_reason if slot.cycle is None else None if running else "Unschedulable",
        preemptible=slot.preemptible,
        protected=slot.protected,
        submitted_at=began - timedelta(seconds=90) if running else began,
        started_at=began if running else None,
        last_checkpoint_at=_checkpoint(slot, age, anchor, now) if running else None,
    )


def _checkpoint(slot: Slot, age: float, anchor: datetime, now: datetime) -> datetime | None:
    if slot.checkpoint_seconds is None:
        return None
    since = (slot.checkpoint_seconds + (now - anchor).total_seconds()) % _CHECKPOINT_EVERY_SECONDS
    return now - timedelta(seconds=since) if since <= age else None  # a job saves nothing before it starts


def _finished(layout: Layout, now: datetime) -> list[Job]:
    """Jobs that ended and whose objects are still listed: they hold nothing, whatever they asked for."""
    jobs = []
    for number, node in enumerate(list(layout.nodes.values())[3:6]):
        shape = next(slot.shape for slot in layout.slots if any(m.node == node.name for m in slot.members))
        name = f"done-{number}"
        began = now - timedelta(hours=9 + number)
        member = Member(name=f"{name}-0", node=node.name)
        jobs.append(
            Job(
                id=f"vision/{name}",
                name=name,
                shape=shape,
                members=(member,),
                tenant="vision",
                kind="training",
                phase="finished",
                pool=node.pool,
                owner=f"Job/{name}",
                submitted_at=began,
                started_at=began,
            )
        )
    return jobs


def _loads(layout: Layout, alive: list[tuple[Slot, Job]]) -> dict[str, dict[int, DeviceLoad]]:
    """What runs on each device of each node, and what ails it."""
    shares: dict[tuple[str, int], list[tuple[Behavior, int]]] = defaultdict(list)
    slices: dict[tuple[str, int], dict[str, Behavior]] = defaultdict(dict)
    seen: dict[tuple[str, int], float] = {}
    for slot, job in alive:
        for member, does in zip(job.members, slot.behaviors, strict=False):
            for hold, behavior in zip(member.shares, does, strict=False):  # none while it waits
                key = (member.node or "", hold.gpu_index)
                seen[key] = min(seen.get(key, 1.0), slot.samples_ratio)
                if hold.mig_instance is None:
                    shares[key].append((BEHAVIORS[behavior], hold.milligpu))
                else:
                    slices[key][hold.mig_instance] = BEHAVIORS[behavior]
    silent: dict[tuple[str, int], set[str]] = defaultdict(set)
    for node, index, instance in layout.silent_slices:
        silent[node, index].add(instance)
    loads: dict[str, dict[int, DeviceLoad]] = defaultdict(dict)
    for key in {*shares, *slices, *layout.troubles, *silent}:
        trouble = layout.troubles.get(key)
        loads[key[0]][key[1]] = DeviceLoad(
            shares=tuple(shares[key]),
            slices=slices[key],
            silent_slices=frozenset(silent[key]),
            samples_ratio=seen.get(key, 1.0),
            hot=trouble == "hot",
            xid=_XIDS.get(trouble or ""),
        )
    return loads
