"""The scalar forms give what the NumPy forms give: node by node, stream by stream, compiled and plain."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpuwatch.fit.fleet_fit import fits as numpy_fits
from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.model.units import GIB
from gpuwatch.placement.kernels import jit, stream
from gpuwatch.placement.kernels.arrays import ask_at, asks_of, kept_for, mix_of, state_of
from gpuwatch.placement.kernels.parts import fits, fragment
from gpuwatch.placement.policy import POLICIES, PolicyContext, make_policy
from gpuwatch.placement.replay import Field, field_of, inflated, node_order, replay_arrivals
from gpuwatch.traces.trace_format import JobTrace
from tests.builders import a_gpu, a_job, a_node, a_shape
from tests.fragmentation.arrays import table_of_tasks
from tests.placement.test_policies import columns_from
from tests.reference.states import MODELS, shape_of, some_mix, some_node, some_task

SCALAR = [name for name in POLICIES.ids() if make_policy(name, PolicyContext(mix=table_of_tasks([]))).kernel()]


def some_field(seed: int, nodes: int = 12, jobs: int = 120) -> Field:
    """A small trace with every odd case that a trace can hold: several models, shares, CPU-only jobs, little memory."""
    rng = random.Random(seed)
    machines = tuple(
        a_node(
            f"n{at}",
            [a_gpu(i, rng.choice(MODELS)) for i in range(rng.choice((1, 2, 4, 8)))],
            cpu_allocatable_millicores=rng.choice((8_000, 32_000, 96_000)),
            memory_allocatable_bytes=rng.choice((64, 256)) * GIB,
        )
        for at in range(nodes)
    )
    shapes = [
        a_shape(gpus, milligpu=milli, cpu=rng.choice((500, 4_000, 12_000)), memory_bytes=rng.choice((1, 30)) * GIB)
        for gpus, milli in ((0, 1000), (1, 300), (1, 460), (1, 1000), (2, 1000), (8, 1000))
    ]
    stream_of = tuple(a_job(f"j{at}", shape=rng.choice(shapes)) for at in range(jobs))
    return field_of(JobTrace(nodes=machines, jobs=stream_of, workload=f"random-{seed}"))


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("policy", SCALAR)
def test_a_kernel_scores_as_rank_does(policy, seed):
    rng = random.Random(seed)
    nodes, mix = [some_node(rng) for _ in range(30)], table_of_tasks(some_mix(rng))
    columns = columns_from(nodes)
    columns.running[: len(nodes)] = rng.randint(0, 2)
    made = make_policy(policy, PolicyContext(mix=mix, seed=seed))
    kernel = made.kernel()
    state, scalar_mix = state_of(columns, mix, np.arange(len(columns.names))), mix_of(mix)
    for draw in range(4):
        shape = shape_of(some_task(rng))
        ask = ask_at(asks_of(columns, [shape]), 0, shape.memory_bytes)
        rows = np.flatnonzero(numpy_fits(columns, shape))
        assert rows.tolist() == [row for row in range(len(columns.names)) if fits(state, ask, row)]
        ranking = made.rank(columns, shape, rows, draw)
        for at, row in enumerate(rows.tolist()):
            assert kernel(state, scalar_mix, ask, row, draw, seed, made.tables) == (
                ranking.score[at],
                ranking.device[at],
            )


@pytest.mark.parametrize("seed", range(20))
def test_the_scalar_fragment_is_exactly_the_numpy_one(seed):
    rng = random.Random(seed)
    columns, table = columns_from([some_node(rng) for _ in range(40)]), table_of_tasks(some_mix(rng))
    expected = fragment_of_nodes(table, columns.left, columns.model, columns.cpu_free)
    mix = mix_of(table)
    for row in range(len(columns.names)):
        assert fragment(mix, columns.left[row], columns.model[row], columns.cpu_free[row]) == expected[row]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("policy", POLICIES.ids())
def test_a_replay_without_numba_is_the_loop_run_plainly(policy, seed, monkeypatch):
    """The loop itself, not compiled, against the NumPy placer: every arrival, every total."""
    field = some_field(seed)
    monkeypatch.setattr(jit, "compiled", lambda function: function)
    loop = replay_arrivals(field, policy, seed=seed, inflate=1.3, compiled=True)
    plain = replay_arrivals(field, policy, seed=seed, inflate=1.3, compiled=False)
    assert loop.curve == plain.curve
    assert loop.admission == plain.admission


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "jobs"),
    [("fgd", 400), ("gpu_packing", 400), ("gpuwatch", 120), ("k8s_least_allocated", 400), ("random", 400)],
)
def test_a_compiled_replay_is_equal(policy, jobs):
    """One policy of each kind: local, by size, holding back, by memory with random ties, drawn anew each time."""
    if not jit.available():
        pytest.skip("numba is not installed")
    field = some_field(5, nodes=30, jobs=jobs)
    fast = replay_arrivals(field, policy, seed=9, inflate=1.4, compiled=True)
    plain = replay_arrivals(field, policy, seed=9, inflate=1.4, compiled=False)
    assert fast.curve == plain.curve
    assert fast.admission == plain.admission


def test_giving_back_restores_the_state():
    field = some_field(3)
    shapes = [job.shape for job in field.trace.jobs]
    state, mix = state_of(field.columns, field.table, node_order(field, 1)), mix_of(field.table)
    before = [np.array(part, copy=True) for part in state[:6]]
    asks, kept = asks_of(field.columns, shapes), kept_for(len(shapes), len(field.columns.names), 2 * len(shapes))
    booked = []
    for at, shape in enumerate(shapes):
        ask = ask_at(asks, at, shape.memory_bytes)
        row = next((row for row in range(len(state.open)) if fits(state, ask, row)), None)
        if row is not None and state.memory_free[row] >= ask.memory:
            taken = np.empty(state.left.shape[1], dtype=np.int64)
            stream.book(state, mix, ask, kept, row, -1, taken)
            booked.append((ask, row, taken))
    assert len(booked) > 10
    for ask, row, taken in reversed(booked):
        stream.give_back(state, mix, ask, kept, row, taken)
    for part, was in zip(state[:6], before, strict=True):
        assert (part == was).all()


def test_the_stream_is_inflated_to_the_bound_and_no_further():
    field = some_field(4, jobs=30)
    jobs = inflated(field, seed=7, inflate=2.0)
    asked = sum(job.shape.milligpu for job in jobs)
    assert 2.0 * field.capacity_milligpu - 8_000 < asked <= 2.0 * field.capacity_milligpu
    assert len({job.id for job in jobs}) == len(jobs)
    assert {job.id for job in field.trace.jobs} <= {job.id for job in jobs}
    assert inflated(field, seed=7, inflate=2.0) == jobs
    assert inflated(field, seed=8, inflate=2.0) != jobs


def test_a_stream_that_asks_for_more_than_the_bound_loses_jobs():
    field = some_field(4)
    jobs = inflated(field, seed=7, inflate=0.2)
    assert sum(job.shape.milligpu for job in jobs) <= 0.2 * field.capacity_milligpu
    assert {job.id.split("~")[0] for job in jobs} <= {job.id for job in field.trace.jobs}


def test_every_policy_has_a_scalar_form():
    assert POLICIES.ids() == SCALAR
