"""Two weeks of hourly demand that lead up to the present: days, weeks, bursts, noise and one hole."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random

from gpuwatch.model.history import ALL_POOLS, DemandSeries, History
from gpuwatch.model.jobs import DemandShape, Job
from gpuwatch.model.units import COMPUTE_SLICES, HOUR_SECONDS, MILLI

HISTORY_HOURS = 14 * 24
GAP_HOURS_BEFORE = range(92, 97)  # nothing was observed then: a monitoring outage in week two


def demanded_gpus(jobs: Iterable[Job], pools: dict[str, str]) -> dict[tuple[str, str], float]:
    """GPUs that running and pending jobs ask for, per (pool, kind); gated and finished ones ask for nothing now."""
    demand: dict[tuple[str, str], float] = defaultdict(float)
    for job in jobs:
        if job.phase in ("running", "pending"):
            for member in job.members:
                pool = pools.get(member.node or "", job.pool or ALL_POOLS)
                demand[pool, job.kind] += _asked_gpus(job.shape)
    return {key: round(gpus, 3) for key, gpus in demand.items() if gpus}


def _asked_gpus(shape: DemandShape) -> float:
    """GPUs that one member asks for; a slice counts its sevenths of the engine ("3g.40gb": 3)."""
    if shape.mig_profile:
        return shape.gpus * int(shape.mig_profile[0]) / COMPUTE_SLICES
    return shape.milligpu / MILLI


def history(seed: int, level: dict[tuple[str, str], float], anchor: datetime, now: datetime) -> History:
    """Series per pool and kind, and "all" per pool. `level` is the demand at `anchor`; the last whole hour is included.

    A value depends on seed, series and hour only, so that histories drawn an hour apart agree on what they share.
    """
    end = _hour(now)
    start = end - timedelta(hours=HISTORY_HOURS)
    hours = [start + timedelta(hours=i) for i in range(HISTORY_HOURS)]
    gap = {_hour(anchor) - timedelta(hours=back) for back in GAP_HOURS_BEFORE}
    series = []
    for pool in sorted({pool for pool, _ in level}):
        kinds = {
            kind: [None if hour in gap else _value(seed, pool, kind, gpus, anchor, hour) for hour in hours]
            for (at, kind), gpus in sorted(level.items())
            if at == pool
        }
        columns = zip(*kinds.values(), strict=True)
        kinds["all"] = [None if None in column else round(sum(v or 0.0 for v in column), 2) for column in columns]
        series += [
            DemandSeries(pool=pool, kind=kind, start_at=start, step_seconds=HOUR_SECONDS, values=tuple(values))
            for kind, values in kinds.items()
        ]
    return History(series=tuple(series))


def _value(seed: int, pool: str, kind: str, level: float, anchor: datetime, hour: datetime) -> float:
    draw = Random(f"{seed}/demand/{pool}/{kind}/{hour.isoformat()}")
    # Clamped: a night-time anchor must not blow the days up to many times the cluster.
    now = min(1.4, max(0.6, _rhythm(kind, anchor)))
    burst = 1.0
    if kind == "batch":
        window = Random(f"{seed}/burst/{pool}/{hour.date()}/{hour.hour // 4}")
        burst = 1.8 if window.random() < 0.16 else 1.0
    return round(max(0.0, level * _rhythm(kind, hour) / now * burst * draw.uniform(0.95, 1.05)), 2)


def _rhythm(kind: str, at: datetime) -> float:
    """Demand relative to a plain weekday, by hour and day (UTC)."""
    hour, weekend = at.hour + at.minute / 60, at.weekday() >= 5
    office = math.exp(-(((hour - 13.5) / 4.5) ** 2))
    evening = 0.5 + 0.5 * math.sin(2 * math.pi * (hour - 9) / 24)
    shape = {
        "training": 0.92 + 0.1 * office,
        "inference": 0.68 + 0.55 * evening,
        "interactive": 0.35 + 0.85 * office,
        "batch": 1.15 - 0.45 * office,
    }
    rest = {"training": 0.93, "inference": 0.82, "interactive": 0.35, "batch": 0.9}
    return shape.get(kind, 1.0) * (rest.get(kind, 1.0) if weekend else 1.0)


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
