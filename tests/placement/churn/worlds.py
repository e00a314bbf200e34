"""Small random clusters with job lists that have every odd case, and short ways to run them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

from gpuwatch.model.jobs import Member
from gpuwatch.model.units import GIB
from gpuwatch.placement.churn import cluster as forms
from gpuwatch.placement.churn import plain_cluster as plain
from gpuwatch.placement.churn.compiled import run_compiled
from gpuwatch.placement.churn.course import Course, course_of, rules_of
from gpuwatch.placement.churn.loop import run
from gpuwatch.placement.churn.replay import churn_field
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.stream import ChurnStream, churn_stream
from gpuwatch.placement.policy import PolicyContext, make_policy
from gpuwatch.placement.replay import Field, node_order
from gpuwatch.traces.trace_format import TRACE_START, JobTrace
from tests.builders import a_gpu, a_job, a_node, a_shape
from tests.reference.states import MODELS


def some_world(seed: int, nodes: int = 5, jobs: int = 40) -> Field:
    """Several models, shares, CPU-only jobs, gangs, priorities, protected jobs, jobs that fit nowhere, told times."""
    rng = random.Random(seed)
    machines = tuple(
        a_node(
            f"n{at}",
            [a_gpu(i, rng.choice(MODELS[:2])) for i in range(rng.choice((1, 2, 4, 8)))],
            cpu_allocatable_millicores=rng.choice((16_000, 32_000, 96_000)),
            memory_allocatable_bytes=rng.choice((64, 256)) * GIB,
        )
        for at in range(nodes)
    )
    listed, durations = [], {}
    for at in range(jobs):
        gpus, milli = rng.choice(((0, 1000), (1, 300), (1, 460), (1, 1000), (1, 1000), (2, 1000), (4, 1000)))
        shape = a_shape(
            gpus,
            milligpu=milli,
            cpu=rng.choice((500, 4_000, 12_000)),
            memory_bytes=rng.choice((1, 30)) * GIB,
            gpu_models=rng.choice(((),) * 5 + (tuple(sorted(MODELS[:1])),)),
        )
        job = a_job(
            f"j{at:03}",
            shape=shape,
            kind=rng.choice(("inference", "batch", "training", "unknown")),
            priority=rng.choice((None, None, None, 5, -5)),
            preemptible=rng.choice((None, None, True, False)),
            protected=rng.random() < 0.1,
            submitted_at=TRACE_START + timedelta(seconds=rng.choice((at, at // 5 * 5, at * 7))) if at % 9 else None,
        )
        if at % 8 == 0:
            job = replace(job, members=tuple(Member(name=f"m{i}") for i in range(rng.randint(2, 4))))
        listed.append(job)
        if at % 7:
            durations[job.id] = rng.choice((5, 20, 20, 60, 300))
    trace = JobTrace(nodes=machines, jobs=tuple(listed), workload=f"random-{seed}", duration_seconds=durations)
    return churn_field(trace)


def some_settings(seed: int, **fields) -> ChurnSettings:
    """Any of the choices; short runs at a load that makes queues."""
    rng = random.Random(seed)
    times = rng.choice(("drawn", "durations", "trace"))
    chosen = {
        "times": times,
        "load": None if times == "trace" else rng.choice((0.5, 1.0, 1.6)),
        "turnovers": None if times == "trace" else 2.0,
        "sigma": 1.0,
        "queue": rng.choice(("backfill", "backfill", "fifo")),
        "depth": rng.choice((2, 1000)),
        "preemption": rng.random() < 0.6,
        "checkpoint_seconds": rng.choice((0.0, 0.0, 30.0)),
        "gang_fraction": rng.choice((0.0, 0.5)),
    }
    return ChurnSettings(**{**chosen, **fields})


def a_course(
    field: Field, policy: str, seed: int, settings: ChurnSettings, form: str = "plain"
) -> tuple[ChurnStream, Course]:
    """The run as arrays: over the NumPy placer ("plain"), the scalar loop not compiled ("loop"), or "compiled"."""
    stream = churn_stream(field.trace, field.capacity_milligpu, settings, seed)
    course = course_of(stream, rules_of(settings, stream), field.columns, field.capacity_milligpu)
    order = node_order(field, seed)
    if form == "plain":
        run(*plain.PLAIN, plain.PlainCluster(field, policy, stream.kinds, order, seed), course, order)
        return stream, course
    chosen = make_policy(policy, PolicyContext(mix=field.table, seed=seed))
    scalar = forms.scalar_cluster(field, chosen, stream.kinds, order, seed)
    kernel = chosen.kernel()
    assert kernel is not None
    if form == "loop":
        run(*forms.scalar_operations(kernel), scalar, course, order)
    else:
        run_compiled(kernel, scalar, course, order)
    return stream, course
