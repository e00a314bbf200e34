"""Plans that empty one node: every job on it gets a named place elsewhere, in order, on rooms that remember.

Only jobs whose devices are known and that nobody protects are moved; CPU-only work stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpuwatch.fit.booking import BookedNode, Hold
from gpuwatch.fit.feasible import Room, spots, take
from gpuwatch.model.jobs import DemandShape, Job


@dataclass(frozen=True, slots=True)
class Move:
    """One job from devices of one node to devices of another, by device index."""

    job: Job
    source: str
    source_gpus: tuple[int, ...]
    target: str
    target_gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot be emptied: a stable code and the job that stands in the way."""

    reason: str
    detail: str


def plan_moves(source: BookedNode, targets: Iterable[Room], most_moves: int) -> tuple[list[Move], list[Room]] | Refusal:
    """Moves that take every GPU job off `source`, and the changed copies of the target rooms.

    Larger jobs are placed first, on the fullest target that fits. The given rooms are left as they are.
    """
    jobs = _jobs_on(source)
    for job, holds in jobs:
        fault = _immovable(job, holds, source)
        if fault is not None:
            return Refusal(fault, f"{job.id} on {source.node.name}")
    if len(jobs) > most_moves:
        return Refusal("too_many_moves", f"{len(jobs)} jobs on {source.node.name}, {most_moves} are worth moving")
    rooms = sorted((place.copy() for place in targets), key=lambda place: sum(place.free_milligpu))
    moves: list[Move] = []
    for job, holds in sorted(jobs, key=lambda pair: (-pair[0].shape.milligpu, pair[0].id)):
        shape = _same_card(job, holds, source)
        for place in rooms:
            where = spots(place, shape)
            if where is not None:
                break
        else:
            return Refusal("no_room_elsewhere", f"{job.id} on {source.node.name}")
        take(place, shape, where)
        moves.append(
            Move(
                job=job,
                source=source.node.name,
                source_gpus=tuple(source.node.gpus[at].index for at, _ in holds),
                target=place.node.name,
                target_gpus=tuple(sorted(place.node.gpus[at].index for at, _ in where)),
            )
        )
        rooms.sort(key=lambda r: sum(r.free_milligpu))  # stable: equal rooms keep their order
    used = {move.target for move in moves}
    return moves, [place for place in rooms if place.node.name in used]


def _jobs_on(source: BookedNode) -> list[tuple[Job, list[tuple[int, Hold]]]]:
    found: dict[str, tuple[Job, list[tuple[int, Hold]]]] = {}
    for at, holds in enumerate(source.holds):
        for hold in holds:
            found.setdefault(hold.job.id, (hold.job, []))[1].append((at, hold))
    return list(found.values())


def _immovable(job: Job, holds: list[tuple[int, Hold]], source: BookedNode) -> str | None:
    """The first reason why a job is not moved."""
    checks = (
        ("protected", job.protected),
        ("not_preemptible", job.preemptible is False),
        ("gang", len(job.members) > 1),
        ("terminating", any(member.terminating for member in job.members)),
        ("devices_unknown", any(hold.guessed for _, hold in holds) or len(holds) != job.shape.gpus),
        ("mig", any(hold.mig_instance is not None for _, hold in holds)),
        ("gpu_model_unknown", any(source.node.gpus[at].model is None for at, _ in holds)),
    )
    return next((reason for reason, holds_true in checks if holds_true), None)


def _same_card(job: Job, holds: list[tuple[int, Hold]], source: BookedNode) -> DemandShape:
    """The job's shape, held to the cards that it runs on now: a move must not slow it down."""
    models = {source.node.gpus[at].model or "" for at, _ in holds}
    return replace(job.shape, gpu_models=tuple(sorted(models)))
