"""Demand as numbers over time: what is demanded now, and even hourly series from irregular points.

Demand is running plus pending: a series of what runs hides every job that waits. A gated or suspended member asks for
nothing yet. Nothing observed is None, never 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

from gpuwatch.errors import InputError
from gpuwatch.model.history import ALL_POOLS, DemandSeries
from gpuwatch.model.jobs import Job, JobKind
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import HOUR_SECONDS, MILLI

ALL_KINDS = "all"
KINDS: tuple[str, ...] = get_args(JobKind)
MAX_STEPS = 24 * 400  # a wrong year in one point must not make a series of millions of hours


@dataclass(frozen=True, slots=True)
class Asked:
    """Members of one job that stand in one state, in thousandths of a device."""

    job: Job
    pool: str
    state: str  # running | pending | gated
    members: int
    milligpu: int


def asked(snapshot: ClusterSnapshot) -> Iterator[Asked]:
    """What every unfinished job asks for, per pool and state; a bound member counts in the pool of its node."""
    pool_of = {node.name: node.pool for node in snapshot.nodes}
    for job in snapshot.jobs:
        if job.phase == "finished":
            continue
        wanted = job.pool or ALL_POOLS
        members: dict[tuple[str, str], int] = defaultdict(int)
        for member in job.members:
            if member.node is not None:
                members[pool_of.get(member.node, wanted), "running"] += 1
            else:
                members[wanted, "gated" if job.phase == "gated" else "pending"] += 1
        each = job.shape.demanded_milligpu
        for (pool, state), count in members.items():
            yield Asked(job=job, pool=pool, state=state, members=count, milligpu=count * each)


def demand_now(snapshot: ClusterSnapshot) -> dict[tuple[str, str], float]:
    """GPUs demanded per (pool, kind) and (pool, "all"), for every pool that has nodes or demand, zeros included.

    Empty when nothing can be said: no job is listed and a source failed.
    """
    if not snapshot.jobs and any(not source.ok for source in snapshot.sources):
        return {}
    total: dict[tuple[str, str], int] = defaultdict(int)
    pools = {node.pool for node in snapshot.nodes if node.gpus}
    for part in asked(snapshot):
        if part.state != "gated" and part.milligpu:
            pools.add(part.pool)
            total[part.pool, part.job.kind] += part.milligpu
            total[part.pool, ALL_KINDS] += part.milligpu
    return {(pool, kind): total[pool, kind] / MILLI for pool in sorted(pools) for kind in (*KINDS, ALL_KINDS)}


def regrid(
    points: Iterable[tuple[datetime, float | None]],
    *,
    pool: str,
    kind: str,
    step_seconds: int = HOUR_SECONDS,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
) -> DemandSeries | None:
    """Irregular (time, GPUs) points as an even UTC series of means per step; None when no point is usable.

    The grid runs from the step of `start_at` (default: of the first point) up to, not including, the step of `end_at`
    (default: the end of the last point's step), newest MAX_STEPS steps at most. Points that are not finite or negative
    are dropped. InputError on a time without zone or a step that is not positive.
    """
    if step_seconds <= 0:
        raise InputError(f"a demand series needs a positive step, not {step_seconds} s")
    bins: dict[int, list[float]] = defaultdict(list)
    for at, amount in points:
        if amount is not None and math.isfinite(amount) and amount >= 0:
            bins[_step(at, step_seconds)].append(float(amount))
    first = min(bins, default=None) if start_at is None else _step(start_at, step_seconds)
    last = max(bins, default=None) if end_at is None else _step(end_at, step_seconds) - 1
    if first is None or last is None or last < first:
        return None
    first = max(first, last - MAX_STEPS + 1)
    values = tuple(math.fsum(bins[step]) / len(bins[step]) if step in bins else None for step in range(first, last + 1))
    if all(amount is None for amount in values):
        return None
    origin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=first * step_seconds)
    return DemandSeries(pool=pool, kind=kind, start_at=origin, step_seconds=step_seconds, values=values)


def _step(at: datetime, step_seconds: int) -> int:
    if at.tzinfo is None:
        raise InputError(
            f"{at.isoformat()} has no time zone", todo="write times in UTC, for example with a Z at the end"
        )
    return math.floor(at.timestamp() / step_seconds)
