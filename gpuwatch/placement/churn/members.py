"""Members of jobs on the cluster: all of a job's are placed or none, and all leave together."""

from __future__ import annotations

from typing import Any

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.churn.course import EVICTED, FREED, Course
from gpuwatch.placement.churn.evict import cheapest_node
from gpuwatch.placement.kernels.jit import kernel


@kernel
def place(operations: Any, cluster: Any, course: Course, job: int, now: int, order: IntArray) -> bool:
    """Books all members or none. Jobs that were sent away for it are in course.evicted, their members given back."""
    slots, kind = course.slots, course.jobs.kind[job]
    course.counts[EVICTED] = 0
    for slot in range(slots.first[job], slots.first[job + 1]):
        row = operations.find(cluster, kind, -1)
        if row < 0 and course.rules.preemption:
            row, count = cheapest_node(cluster, course, kind, now, order)
            for at in range(count):
                remove(operations, cluster, course, course.victims[at])
                course.evicted[course.counts[EVICTED]] = course.victims[at]
                course.counts[EVICTED] += 1
            if row >= 0:
                row = operations.find(cluster, kind, row)
        if row < 0:
            _take_back(operations, cluster, course, job, slot)
            return False
        operations.take(cluster, kind, row, slots.devices[slot])
        slots.row[slot] = row
    return True


@kernel
def _take_back(operations: Any, cluster: Any, course: Course, job: int, end: int) -> None:
    """Undoes a placement that came up to the member `end`: its members leave, those sent away stay after all."""
    slots, kind = course.slots, course.jobs.kind[job]
    for slot in range(end - 1, slots.first[job] - 1, -1):
        operations.untake(cluster, kind, slots.row[slot], slots.devices[slot])
        slots.row[slot] = -1
    for at in range(course.counts[EVICTED] - 1, -1, -1):
        victim = course.evicted[at]
        for slot in range(slots.first[victim], slots.first[victim + 1]):
            operations.again(cluster, course.jobs.kind[victim], slots.row[slot], slots.devices[slot])
            link(course, slot)


@kernel
def remove(operations: Any, cluster: Any, course: Course, job: int) -> None:
    """Gives back what the job's members hold. They keep their rows until _send_back or _take_back."""
    slots = course.slots
    for slot in range(slots.first[job], slots.first[job + 1]):
        operations.give(cluster, course.jobs.kind[job], slots.row[slot], slots.devices[slot])
        _unlink(course, slot)


@kernel
def forget_rows(course: Course, job: int) -> None:
    """The rows count as given back from now on."""
    for slot in range(course.slots.first[job], course.slots.first[job + 1]):
        course.freed[course.counts[FREED] % len(course.freed)] = course.slots.row[slot]
        course.counts[FREED] += 1
        course.slots.row[slot] = -1


@kernel
def link(course: Course, slot: int) -> None:
    slots = course.slots
    head = slots.head[slots.row[slot]]
    slots.before[slot], slots.after[slot] = -1, head
    if head >= 0:
        slots.before[head] = slot
    slots.head[slots.row[slot]] = slot


@kernel
def _unlink(course: Course, slot: int) -> None:
    slots = course.slots
    before, after = slots.before[slot], slots.after[slot]
    if before >= 0:
        slots.after[before] = after
    else:
        slots.head[slots.row[slot]] = after
    if after >= 0:
        slots.before[after] = before
