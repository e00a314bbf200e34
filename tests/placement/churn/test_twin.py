"""The loop against its twin: every start, end and loss of every job, and the time-weighted measures."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gpuwatch.placement.churn.course import Course
from gpuwatch.placement.kernels import jit
from gpuwatch.placement.policy import POLICIES
from gpuwatch.placement.replay import node_order
from tests.placement.churn.worlds import a_course, some_settings, some_world
from tests.reference.churn import Twin


def twin_of(field, stream, course: Course, policy: str, seed: int) -> Twin:
    twin = Twin(field, stream, course.rules, policy, seed, node_order(field, seed))
    twin.run()
    return twin


def by_job(column) -> dict[int, int]:
    return {job: int(value) for job, value in enumerate(column) if value >= 0}


def assert_same(twin: Twin, course: Course) -> None:
    jobs = course.jobs
    assert by_job(jobs.first_began) == twin.first_began
    assert by_job(jobs.finished) == twin.finished
    assert by_job(jobs.began) == twin.began
    assert {job: lost for job, lost in by_job(jobs.lost).items() if lost} == {k: v for k, v in twin.lost.items() if v}
    assert jobs.left.tolist() == [twin.left[job] for job in range(len(jobs.left))]
    for job, spots in twin.spots.items():
        mine = range(course.slots.first[job], course.slots.first[job + 1])
        assert [course.slots.row[slot] for slot in mine] == [row for row, _ in spots]
        held = [tuple(sorted(d for d in course.slots.devices[slot].tolist() if d >= 0)) for slot in mine]
        assert held == [tuple(sorted(devices)) for _, devices in spots]
    ran = Counter()
    for job, since, until in twin.runs:
        ran[job] += until - since
    for job in twin.finished:  # on the cluster for the work, and for what of it was lost
        assert ran[job] == twin.stream.length[job] + course.jobs.lost[job]
    for name, expected in twin.means().items():
        np.testing.assert_allclose(getattr(course.parts, name), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_what_the_twin_says(seed):
    field, settings = some_world(seed), some_settings(seed)
    policy = POLICIES.ids()[seed % len(POLICIES.ids())]
    stream, course = a_course(field, policy, seed, settings)
    assert_same(twin_of(field, stream, course, policy, seed), course)


@pytest.mark.parametrize("seed", range(100, 116))
def test_the_scalar_loop_is_the_loop_over_numpy(seed):
    """Not compiled: the same source that numba reads, on random kinds of runs and all policies."""
    field, settings = some_world(seed, nodes=8, jobs=60), some_settings(seed)
    policy = POLICIES.ids()[seed % len(POLICIES.ids())]
    runs = [a_course(field, policy, seed, settings, form)[1] for form in ("plain", "loop")]
    assert_equal(*runs)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fgd", "random"])
def test_a_compiled_run_is_equal(policy):
    if not jit.available():
        pytest.skip("numba is not installed")
    field = some_world(7, nodes=12, jobs=80)
    for seed in range(12):
        settings = some_settings(seed)
        assert_equal(*(a_course(field, policy, seed, settings, form)[1] for form in ("plain", "compiled")))


def assert_equal(one: Course, other: Course) -> None:
    """Everything that tells of the run, bit by bit; scratch and order of lists may differ."""
    for name in Course._fields:
        if name in ("jobs", "parts"):
            for part, twin in zip(getattr(one, name), getattr(other, name), strict=True):
                np.testing.assert_array_equal(part, twin)
    np.testing.assert_array_equal(one.slots.row, other.slots.row)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.lost[0] == other.lost[0]
