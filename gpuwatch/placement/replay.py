"""Replays a job trace under a policy by the published arrival protocol, and tells what came of it.

Jobs come in an order shuffled by the seed, one at a time; nothing leaves, and a job that does not fit is dropped. The
stream is first inflated: jobs drawn from it again until the next would ask for more than a multiple of the capacity.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuwatch.demand.mix import demand_mix
from gpuwatch.errors import InputError, SettingsError
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import Columns, FloatArray, IntArray, columns_of
from gpuwatch.fragmentation.kernel import MixTable, fragment_of_nodes
from gpuwatch.fragmentation.report import table_of
from gpuwatch.model.jobs import DemandShape, Job
from gpuwatch.model.replay import ReplayRun
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels import jit
from gpuwatch.placement.kernels.arrays import asks_of, kept_for, mix_of, state_of
from gpuwatch.placement.kernels.stream import run
from gpuwatch.placement.placer import Placer
from gpuwatch.placement.policy import Policy, PolicyContext, make_policy, score_key
from gpuwatch.placement.replay_curve import admission, curve, ratio_at
from gpuwatch.traces.trace_format import JobTrace, empty_snapshot

MAX_INFLATE = 10.0


@dataclass(frozen=True, slots=True)
class Course:
    """What happened at each of T arrivals. Totals are those of the cluster after the arrival, milligpu."""

    row: IntArray  # (T,) node, or -1 where nothing fitted
    free: FloatArray  # (T,)
    fragment: FloatArray  # (T,) the published F


@dataclass(frozen=True, slots=True)
class Field:
    """A trace's empty cluster and demand mix, ready to be replayed on under any policy and seed."""

    trace: JobTrace
    columns: Columns
    table: MixTable
    capacity_milligpu: int


def field_for(trace: JobTrace) -> Field:
    """InputError for a trace without devices."""
    snapshot = empty_snapshot(trace)
    columns = columns_of(book(snapshot))
    capacity = MILLI * int(columns.usable.sum())
    if not capacity:
        raise InputError(f"the trace {trace.workload} has no usable GPU to replay on", todo="name another trace")
    return Field(trace, columns, table_of(columns, demand_mix(snapshot, AnalysisSettings())), capacity)


def field_of(trace: JobTrace) -> Field:
    """field_for() the arrival protocol; InputError also for jobs that it cannot place (gangs, MIG slices)."""
    field = field_for(trace)
    odd = next((job.id for job in trace.jobs if len(job.members) != 1 or job.shape.mig_profile), None)
    if odd is not None:
        raise InputError(
            f"job {odd} is a gang or asks for MIG slices, which the arrival protocol does not place",
            todo="replay it with --protocol churn, or name another trace",
        )
    return field


def replay_arrivals(field: Field, policy: str, *, seed: int, inflate: float, compiled: bool | None = None) -> ReplayRun:
    """One run. An unknown policy or an inflation outside 0..10 is a SettingsError.

    compiled: whether the loop runs through numba; None compiles where numba is installed. Results are equal.
    """
    jobs = inflated(field, seed, inflate)
    chosen = make_policy(policy, PolicyContext(mix=field.table, seed=seed))
    order = node_order(field, seed)
    fast = jit.available() if compiled is None else compiled
    if fast and chosen.kernel() is not None:
        warm_up(field, chosen)
        started = time.perf_counter()
        course = _compiled_course(field, chosen, [job.shape for job in jobs], order, seed)
    else:
        started = time.perf_counter()
        course = _plain_course(field, policy, [job.shape for job in jobs], order, seed)
    seconds = time.perf_counter() - started
    asked = np.array([job.shape.milligpu for job in jobs], dtype=np.int64)
    points = curve(asked, course.free, course.fragment, field.capacity_milligpu)
    return ReplayRun(
        trace=field.trace.name,
        workload=field.trace.workload,
        policy=policy,
        seed=seed,
        inflate_ratio=inflate,
        arrivals=len(jobs),
        allocation_ratio_at_100=ratio_at(points, 100),
        allocation_ratio_at_130=ratio_at(points, 130),
        curve=points,
        admission=admission([job.shape for job in jobs], course.row >= 0, field.capacity_milligpu),
        seconds=seconds,
    )


def inflated(field: Field, seed: int, inflate: float) -> list[Job]:
    """The trace's jobs, shuffled by the seed, then drawn again (or dropped at random) to `inflate` x the capacity.

    Drawn jobs get ids of their own. A stream that asks for no GPU cannot be inflated: InputError.
    """
    if not 0 < inflate <= MAX_INFLATE:
        raise SettingsError(f"inflate is {inflate:g}, outside 0..{MAX_INFLATE:g}", todo="give for example 1.3")
    rng = random.Random(seed)
    jobs = sorted(field.trace.jobs, key=lambda job: job.id)
    rng.shuffle(jobs)
    asked, bound = sum(job.shape.milligpu for job in jobs), inflate * field.capacity_milligpu
    if not asked:
        raise InputError("no job of the trace asks for a GPU", todo="name another workload")
    while asked > bound:
        asked -= jobs.pop(rng.randrange(len(jobs))).shape.milligpu
    source = list(jobs)
    while source:
        job = source[rng.randrange(len(source))]
        if asked + job.shape.milligpu > bound:
            break
        asked += job.shape.milligpu
        jobs.append(replace(job, id=f"{job.id}~{len(jobs)}"))
    return jobs


def node_order(field: Field, seed: int) -> IntArray:
    """(N,) the place of each node among equals in this run: a random permutation of its own."""
    order = list(range(len(field.columns.names)))
    random.Random(f"nodes {seed}").shuffle(order)
    return np.array(order, dtype=np.int64)


def warm_up(field: Field, policy: Policy) -> None:
    """Compiles the loop for `policy`, which takes seconds once in a process."""
    _compiled_course(field, policy, [], node_order(field, 0), 0)


def _compiled_course(field: Field, policy: Policy, shapes: list[DemandShape], order: IntArray, seed: int) -> Course:
    state, mix = state_of(field.columns, field.table, order, policy.holds), mix_of(field.table)
    keys = [score_key(policy, shape) for shape in shapes]
    first = dict(zip(keys, shapes, strict=True))
    number = {key: at for at, key in enumerate(first)}
    course = _empty_course(len(shapes))
    kernel = policy.kernel()
    assert kernel is not None  # else nobody would have come here
    jit.compiled(run)(
        jit.compiled(kernel),
        state,
        mix,
        asks_of(field.columns, list(first.values())),
        np.array([number[key] for key in keys], dtype=np.int64),
        np.array([shape.memory_bytes for shape in shapes], dtype=np.int64),
        kept_for(len(first), len(field.columns.names), len(shapes)),
        policy.local,
        policy.random_ties,
        seed,
        policy.tables,
        np.empty(state.left.shape[1], dtype=np.int64),
        course.row,
        course.free,
        course.fragment,
    )
    return course


def _plain_course(field: Field, policy: str, shapes: Sequence[DemandShape], order: IntArray, seed: int) -> Course:
    """The same through NumPy."""
    columns = field.columns.copy()
    placer = Placer(columns, field.table, policy, order=order, seed=seed, holds_back=True)
    fragments = fragment_of_nodes(field.table, columns.left, columns.model, columns.cpu_free)
    course = _empty_course(len(shapes))
    free, total = float(columns.left.sum()), float(fragments.sum())
    for at, shape in enumerate(shapes):
        spot = placer.best(shape)
        if spot is not None:
            placer.take(spot)
            row = slice(spot.row, spot.row + 1)
            now = fragment_of_nodes(field.table, columns.left[row], columns.model[row], columns.cpu_free[row])[0]
            free, total = free - shape.milligpu, total + now - fragments[spot.row]
            fragments[spot.row] = now
        course.row[at] = -1 if spot is None else spot.row
        course.free[at], course.fragment[at] = free, total
    return course


def _empty_course(arrivals: int) -> Course:
    return Course(row=np.full(arrivals, -1, dtype=np.int64), free=np.zeros(arrivals), fragment=np.zeros(arrivals))
