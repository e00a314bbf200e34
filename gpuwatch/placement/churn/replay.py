"""Replays a job trace with arrivals and departures under a policy, and tells what came of it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from gpuwatch.errors import InputError
from gpuwatch.model.churn import ChurnRun
from gpuwatch.model.units import HOUR_SECONDS, MILLI
from gpuwatch.placement.churn import cluster as forms
from gpuwatch.placement.churn import outcome
from gpuwatch.placement.churn import plain_cluster as plain
from gpuwatch.placement.churn.compiled import run_compiled
from gpuwatch.placement.churn.course import PREEMPTIONS, WAITING_MILLIGPU, Course, course_of, rules_of
from gpuwatch.placement.churn.loop import run
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.stream import ChurnStream, churn_stream
from gpuwatch.placement.kernels import jit
from gpuwatch.placement.policy import Policy, PolicyContext, make_policy
from gpuwatch.placement.replay import Field, field_for, node_order
from gpuwatch.traces.trace_format import JobTrace


def churn_field(trace: JobTrace) -> Field:
    """InputError for a trace without devices, with MIG slices, or with jobs of no member."""
    odd = next((job.id for job in trace.jobs if job.shape.mig_profile or not job.members), None)
    if odd is not None:
        raise InputError(f"job {odd} asks for MIG slices or has no member, and is not placed", todo="leave it out")
    return field_for(trace)


def replay_churn(
    field: Field, policy: str, *, seed: int, settings: ChurnSettings, compiled: bool | None = None
) -> ChurnRun:
    """One run. An unknown policy is a SettingsError, a list without the times that are asked for an InputError.

    compiled: whether the loop runs through numba; None compiles where numba is installed. Results are equal.
    """
    stream = churn_stream(field.trace, field.capacity_milligpu, settings, seed)
    chosen = make_policy(policy, PolicyContext(mix=field.table, seed=seed))
    fast = (jit.available() if compiled is None else compiled) and chosen.kernel() is not None
    if fast:
        _run(field, chosen, policy, _nothing_of(stream), settings, seed, fast)  # compiles: seconds, once in a process
    started = time.perf_counter()
    course = _run(field, chosen, policy, stream, settings, seed, fast)
    return _told(field, policy, seed, settings, stream, course, time.perf_counter() - started)


def _run(
    field: Field, chosen: Policy, policy: str, stream: ChurnStream, settings: ChurnSettings, seed: int, fast: bool
) -> Course:
    course = course_of(stream, rules_of(settings, stream), field.columns, field.capacity_milligpu)
    order = node_order(field, seed)
    if not fast:
        run(*plain.PLAIN, plain.PlainCluster(field, policy, stream.kinds, order, seed), course, order)
        return course
    kernel = chosen.kernel()
    assert kernel is not None
    run_compiled(kernel, forms.scalar_cluster(field, chosen, stream.kinds, order, seed), course, order)
    return course


def _nothing_of(stream: ChurnStream) -> ChurnStream:
    none = np.zeros(0, dtype=np.int64)
    return replace(stream, kind=none, arrival=none, length=none)


def _told(
    field: Field,
    policy: str,
    seed: int,
    settings: ChurnSettings,
    stream: ChurnStream,
    course: Course,
    seconds: float,
) -> ChurnRun:
    rules, parts = course.rules, course.parts
    return ChurnRun(
        trace=field.trace.name,
        workload=field.trace.workload,
        policy=policy,
        seed=seed,
        times=settings.times,
        jobs_without_time=stream.jobs_without_time,
        jobs_left_out=stream.jobs_left_out,
        offered_load_ratio=outcome.offered_load(stream, course),
        span_seconds=rules.end / MILLI,
        warm_up_seconds=rules.warm_up / MILLI,
        initial=stream.initial,
        **outcome.counts(course),
        utilization_ratio=outcome.steady(course, parts.used) / course.capacity,
        fragment_ratio=outcome.share(outcome.steady(course, parts.fragment), outcome.steady(course, parts.idle)),
        waiting_milligpu=outcome.steady(course, parts.waiting),
        waiting_milligpu_at_end=int(course.counts[WAITING_MILLIGPU]),
        stuck_milligpu=outcome.steady(course, parts.stuck),
        preempted_jobs=int((course.jobs.preempted > 0).sum()),
        preemptions=int(course.counts[PREEMPTIONS]),
        lost_gpu_hours=float(course.lost[0]) / MILLI / MILLI / HOUR_SECONDS,
        curve=outcome.curve_of(course),
        sizes=outcome.sizes_of(stream, course),
        seconds=seconds,
    )
