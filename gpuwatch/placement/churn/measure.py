"""What the event loop measures: time-weighted amounts, and what is stuck."""

from __future__ import annotations

from typing import Any

from gpuwatch.placement.churn.course import FREED, WAITING, WAITING_MILLIGPU, Course
from gpuwatch.placement.kernels.jit import kernel


@kernel
def stuck(cluster: Any, course: Course) -> int:
    """Milligpu of waiting jobs, in their order, that the idle devices could serve by their sum while no node can.

    A job whose kind was not looked at since something was given back does not count: nobody knows.
    """
    if course.counts[WAITING] == 0:
        return 0
    idle, stuck, looked = cluster.total[0], 0, 0
    for rank in range(course.kinds.ranks):
        ring = len(course.jobs.kind) + rank
        job = course.queue.after[ring]
        while job != ring and looked < course.rules.depth:
            kind = course.jobs.kind[job]
            asked = course.kinds.milligpu[kind]
            if 0 < asked <= idle - stuck and course.kinds.tried[kind] == course.counts[FREED]:
                stuck += asked
            looked += 1
            job = course.queue.after[job]
    return stuck


@kernel
def pass_time(cluster: Any, course: Course, now: int, then: int, stuck: int) -> None:
    """Adds what stood between two moments to the parts of the run that they lie in."""
    parts = course.parts
    width = course.rules.end // len(parts.used)
    idle, fragment = cluster.total[0], cluster.total[1]
    while now < then:
        part = now // width
        until = min(then, (part + 1) * width)
        time = until - now
        parts.used[part] += (course.capacity - idle) * time
        parts.idle[part] += idle * time
        parts.fragment[part] += fragment * time
        parts.waiting[part] += course.counts[WAITING_MILLIGPU] * time
        parts.stuck[part] += stuck * time
        now = until
