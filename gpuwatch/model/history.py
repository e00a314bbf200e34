"""Demand over time, on an even UTC grid. A missing hour is None, never 0."""

from __future__ import annotations

from datetime import datetime

from gpuwatch.model.values import value

ALL_POOLS = "*"
HISTORY_HOURS = 28 * 24  # four weeks: enough for a weekly rhythm to be seen more than once


@value
class DemandSeries:
    """Mean GPUs demanded (running + pending) per step, for one pool and workload kind.

    values[i] covers [start_at + i * step_seconds, start_at + (i + 1) * step_seconds); None where nothing was observed.
    """

    pool: str  # ALL_POOLS: jobs that name no pool
    kind: str  # a JobKind, or "all"
    start_at: datetime
    step_seconds: int
    values: tuple[float | None, ...]


@value
class History:
    """What the store remembers of the demand before the snapshot."""

    series: tuple[DemandSeries, ...] = ()
