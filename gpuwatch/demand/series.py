"""Demand as numbers: what every unfinished job asks for, and the sums per pool and kind that the store keeps.

Demand is running plus pending: a series of what runs hides every job that waits. A gated or suspended member asks for
nothing yet. Nothing observed is None, never 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from gpuwatch.model.history import ALL_POOLS
from gpuwatch.model.jobs import Job, JobKind
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI

ALL_KINDS = "all"
KINDS: tuple[str, ...] = get_args(JobKind)


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
