"""Counts devices once, on one ladder: installed >= healthy >= schedulable >= allocated >= active.

Every device is counted into one cell (its pool, its model), and scopes are sums of cells: so they add up by
construction. docs/decisions/002-waterfall-counting.md says why each odd case is counted as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from gpuwatch.counting.idleness import IdleState, verdict
from gpuwatch.fit.booking import BookedNode, Booking, node_block_cause
from gpuwatch.model.catalogue import slices_of
from gpuwatch.model.cluster import UNKNOWN_MODEL, Gpu
from gpuwatch.model.evaluation import Waterfall
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import MILLI

UNHEALTHY = "unhealthy"
UNHEALTHY_HELD = "unhealthy_held"
# When holds exceed the device, what is proven active is kept first and idleness last, so that it is never overstated.
_ORDER: tuple[IdleState, ...] = ("active", "unknown", "idle")
_FIELD = {"active": "active", "unknown": "activity_unknown", "idle": "idle_held"}

_Cell = dict[str, int]  # ladder step or "blocked:cause" -> milligpu
_States = dict[tuple[str, str, int, str | None], IdleState]  # (job, node, position, instance) -> counted state


def waterfalls(
    booking: Booking, taken_at: datetime, settings: AnalysisSettings
) -> tuple[Waterfall, tuple[Waterfall, ...]]:
    """The overall waterfall, then one per pool, one per model and one per (pool, model), each kind sorted by name."""
    states = _states(booking, taken_at, settings)
    cells: dict[tuple[str, str], _Cell] = defaultdict(lambda: defaultdict(int))
    for booked in booking.nodes.values():
        for at, gpu in enumerate(booked.node.gpus):
            _count(cells[booked.node.pool, gpu.model or UNKNOWN_MODEL], booked, at, gpu, states)
    pools = sorted({pool for pool, _ in cells})
    models = sorted({model for _, model in cells})
    scopes = [_sum((cells[key] for key in cells if key[0] == pool), pool=pool) for pool in pools]
    scopes += [_sum((cells[key] for key in cells if key[1] == model), gpu_model=model) for model in models]
    scopes += [_sum([cells[pool, model]], pool=pool, gpu_model=model) for pool, model in sorted(cells)]
    return _sum(cells.values()), tuple(scopes)


def _states(booking: Booking, taken_at: datetime, settings: AnalysisSettings) -> _States:
    jobs = {hold.job.id: hold.job for booked in booking.nodes.values() for holds in booked.holds for hold in holds}
    return {
        (job.id, device.node, device.position, device.mig_instance): device.state
        for job in jobs.values()
        for device in verdict(job, booking, taken_at, settings).devices
    }


def _count(cell: _Cell, booked: BookedNode, at: int, gpu: Gpu, states: _States) -> None:
    held = _held(booked, at, gpu, states)
    allocated = sum(held.values())
    cell["installed"] += MILLI
    if gpu.health == "unhealthy":
        cell["blocked:" + UNHEALTHY] += MILLI - allocated
        cell["blocked:" + UNHEALTHY_HELD] += allocated
        return
    cell["healthy"] += MILLI
    if gpu.health == "unknown":
        cell["health_unknown"] += MILLI
    cause = node_block_cause(booked.node)
    if cause is None:
        cell["schedulable"] += MILLI
    else:
        cell["schedulable"] += allocated
        cell["blocked:" + cause] += MILLI - allocated
    for state, milligpu in held.items():
        cell[_FIELD[state]] += milligpu


def _held(booked: BookedNode, at: int, gpu: Gpu, states: _States) -> dict[IdleState, int]:
    """Thousandths of the device held in each state; together never more than the device."""
    amount: dict[IdleState, float] = dict.fromkeys(_ORDER, 0.0)
    instances: dict[str, IdleState] = {}
    for hold in booked.holds[at]:
        state = states[hold.job.id, booked.node.name, at, hold.mig_instance]
        if hold.mig_instance is None:
            amount[state] += max(0, hold.milligpu)
        else:  # an instance that two jobs claim is still one instance
            instances[hold.mig_instance] = min(instances.get(hold.mig_instance, state), state, key=_ORDER.index)
    slices = {instance.id: instance.compute_slices for instance in gpu.mig_instances}
    for name, state in instances.items():
        amount[state] += MILLI * max(0, slices.get(name, 0)) / slices_of(gpu.model)[0]
    out: dict[IdleState, int] = {}
    total, before = 0.0, 0
    for state in _ORDER:
        total += amount[state]
        upto = min(MILLI, round(total))
        out[state] = upto - before
        before = upto
    return out


def _sum(cells: Iterable[_Cell], *, pool: str | None = None, gpu_model: str | None = None) -> Waterfall:
    total: _Cell = defaultdict(int)
    for cell in cells:
        for key, milligpu in cell.items():
            total[key] += milligpu
    allocated = sum(total[name] for name in _FIELD.values())
    blocked = {key.removeprefix("blocked:"): total[key] for key in sorted(total) if key.startswith("blocked:")}
    return Waterfall(
        pool=pool,
        gpu_model=gpu_model,
        installed_milligpu=total["installed"],
        healthy_milligpu=total["healthy"],
        schedulable_milligpu=total["schedulable"],
        allocated_milligpu=allocated,
        active_milligpu=total["active"],
        idle_held_milligpu=total["idle_held"],
        activity_unknown_milligpu=total["activity_unknown"],
        free_milligpu=total["schedulable"] - allocated,
        health_unknown_milligpu=total["health_unknown"],
        blocked={cause: milligpu for cause, milligpu in blocked.items() if milligpu},
    )
