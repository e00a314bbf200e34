"""The loop against its twin: every start, end and loss of every job, and the time-weighted measures."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwatch.placement.churn.course import Course
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
    for name, expected in twin.means().items():
        np.testing.assert_allclose(getattr(course.parts, name), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_what_the_twin_says(seed):
    field, settings = some_world(seed), some_settings(seed)
    policy = POLICIES.ids()[seed % len(POLICIES.ids())]
    stream, course = a_course(field, policy, seed, settings)
    assert_same(twin_of(field, stream, course, policy, seed), course)
