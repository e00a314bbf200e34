"""From a snapshot to what a plan may work with: pieces that may move, jobs that wait, and why others are left alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from gpuwatch.fit.booking import Booking, Hold
from gpuwatch.fit.columns import Columns, IntArray, bounded, columns_of
from gpuwatch.fragmentation.report import table_of
from gpuwatch.model.jobs import Job
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.plan import MoveCost, PlanLimits, Refused
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.asks import Access, Ask, States, ask_of
from gpuwatch.placement.rebalance.fill import Queue
from gpuwatch.placement.rebalance.ground import Budget, Ground, Piece
from gpuwatch.placement.rebalance.movable import countable, immovable

NO_COST = MoveCost(gpu_hours=0.0, work_lost_seconds=0, basis="no cost known")


@dataclass(frozen=True, slots=True)
class Survey:
    """The ground that a plan is made on, and what stays out of it. waiting: jobs per ask of the queue, first first."""

    ground: Ground
    jobs: dict[str, Job]
    waiting: tuple[tuple[str, ...], ...]
    refused: tuple[Refused, ...]
    costs: Mapping[str, MoveCost]
    running_jobs: int


@dataclass(slots=True)
class _Refusals:
    jobs: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def values(self) -> tuple[Refused, ...]:
        told = (Refused(reason=reason, jobs=len(ids), example=min(ids)) for reason, ids in self.jobs.items())
        return tuple(sorted(told, key=lambda each: (-each.jobs, each.reason)))


def survey(
    snapshot: ClusterSnapshot,
    booking: Booking,
    mix: DemandMix,
    limits: PlanLimits,
    costs: Mapping[str, MoveCost],
    left_by: Mapping[str, frozenset[str]],
) -> Survey:
    """`costs` by job; a job that it lacks costs nothing. left_by: nodes that a job must not go back to."""
    columns = columns_of(booking)
    access = Access(columns, limits.pools)
    refusals = _Refusals()
    pieces = _pieces(snapshot, booking, columns, limits, costs, left_by, refusals)
    queue, waiting = _queue(snapshot, access, limits, refusals)
    running = sum(job.phase != "finished" and any(m.node is not None for m in job.members) for job in snapshot.jobs)
    moves = limits.max_moves
    if moves is None:
        moves = max(1, int(limits.max_moves_ratio * running)) if limits.max_moves_ratio > 0 else 0
    hours = float("inf") if limits.max_gpu_hours is None else limits.max_gpu_hours
    ground = Ground(
        columns=columns,
        access=access,
        pieces=pieces,
        queue=queue,
        mix=table_of(columns, mix),
        budget=Budget(moves, hours, limits.max_per_tenant),
        states=_states(booking, columns),
    )
    jobs = {job.id: job for job in snapshot.jobs}
    return Survey(ground, jobs, waiting, refusals.values(), costs, running)


def _states(booking: Booking, columns: Columns) -> States:
    """What is free now. Where more is asked for than there is, less than nothing: whoever leaves frees that first."""
    nodes = booking.nodes.values()
    over = [(bounded(b.cpu_over_millicores), bounded(b.memory_over_bytes)) for b in nodes]
    amounts: IntArray = np.array(over, dtype=np.int64).reshape(len(over), 2)
    return States(
        row=np.arange(len(over)),
        cpu=columns.cpu_free - np.where(columns.cpu_known, amounts[:, 0], 0),
        memory=columns.memory_free - np.where(columns.memory_known, amounts[:, 1], 0),
        left=columns.left.copy(),
    )


def _pieces(
    snapshot: ClusterSnapshot,
    booking: Booking,
    columns: Columns,
    limits: PlanLimits,
    costs: Mapping[str, MoveCost],
    left_by: Mapping[str, frozenset[str]],
    refusals: _Refusals,
) -> list[Piece]:
    rows = {name: row for row, name in enumerate(columns.names)}
    holds = _holds(booking)
    members = Counter(_owner(job) for job in snapshot.jobs if job.phase != "finished" for _ in job.members)
    unbooked = {job.id for job, _ in booking.unbooked}
    out = []
    for job in snapshot.jobs:
        if job.phase == "finished" or all(member.node is None for member in job.members):
            continue
        mine = holds.get(job.id, [])
        fault = immovable(job, mine, limits, booking) or ("over_allocated" if job.id in unbooked else None)
        if fault is not None:
            refusals.jobs[fault].append(job.id)
            continue
        row = rows[job.members[0].node or ""]
        node = booking.nodes[columns.names[row]]
        devices = tuple(at for at, _ in mine)
        models = tuple(sorted({node.node.gpus[at].model or "" for at in devices}))
        most = limits.max_per_owner
        out.append(
            Piece(
                job=job.id,
                ask=ask_of(job.shape, node.node.pool, job.shape.gpu_models if limits.any_model else models),
                row=row,
                devices=devices,
                gives=tuple(at for at in devices if node.usable[at]),
                owner=_owner(job),
                owner_most=ceil(members[_owner(job)] / 4) if most is None else most,
                tenant=job.tenant or "",
                price=costs.get(job.id, NO_COST).gpu_hours,
                never_rows=frozenset(rows[name] for name in left_by.get(job.id, ()) if name in rows),
            )
        )
    return out


def _holds(booking: Booking) -> dict[str, list[tuple[int, Hold]]]:
    found: dict[str, list[tuple[int, Hold]]] = defaultdict(list)
    for booked in booking.nodes.values():
        for at, holds in enumerate(booked.holds):
            for hold in holds:
                found[hold.job.id].append((at, hold))
    return found


def _owner(job: Job) -> str:
    return f"{job.tenant}/{job.owner}" if job.owner else job.id


def _queue(
    snapshot: ClusterSnapshot, access: Access, limits: PlanLimits, refusals: _Refusals
) -> tuple[Queue, tuple[tuple[str, ...], ...]]:
    """Jobs of one member that wait for GPUs, by ask; the most urgent of each first."""
    waiting: dict[Ask, list[Job]] = defaultdict(list)
    for job in snapshot.jobs:
        if job.phase != "pending" or any(member.node is not None for member in job.members) or not job.members:
            continue
        if job.shape.gpus <= 0:
            continue
        if len(job.members) > 1 or job.shape.mig_profile or not countable(job):
            kind = "gang" if len(job.members) > 1 else "mig" if job.shape.mig_profile else "amounts_unclear"
            refusals.jobs[f"pending_{kind}"].append(job.id)
        else:
            waiting[ask_of(job.shape, job.pool, job.shape.gpu_models)].append(job)
    asks = sorted(waiting, key=lambda ask: (-ask.milligpu, ask.cpu, ask.memory, ask.models, ask.pool or ""))
    ids = tuple(tuple(job.id for job in sorted(waiting[ask], key=_urgency)) for ask in asks)
    return Queue(access, asks, [len(each) for each in ids]), ids


def _urgency(job: Job) -> tuple[int, str, str]:
    return -(job.priority or 0), job.submitted_at.isoformat() if job.submitted_at else "~", job.id
