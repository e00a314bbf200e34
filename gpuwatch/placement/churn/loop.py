"""The event loop: at each moment first who ends, then who arrives, then one look at the queue."""

from __future__ import annotations

from typing import Any

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.churn.cluster import Operations
from gpuwatch.placement.churn.course import EVICTED, FREED, PREEMPTIONS, WAITING, WAITING_MILLIGPU, Course
from gpuwatch.placement.churn.evict import could_fit, work_lost
from gpuwatch.placement.churn.measure import pass_time, stuck
from gpuwatch.placement.churn.members import forget_rows, link, place, remove
from gpuwatch.placement.churn.queue import add_end, drop_end, enter, leave
from gpuwatch.placement.kernels.jit import kernel


def run(
    find: Any, take: Any, untake: Any, give: Any, again: Any, cluster: Any, course: Course, order: IntArray
) -> None:
    """The whole run, by the five Operations. `order` (N,) tells equal nodes apart, as for placements."""
    operations = Operations(find, take, untake, give, again)
    jobs, ends, rules = course.jobs, course.ends, course.rules
    now, arrived, held_up = 0, 0, 0
    while True:
        then = rules.end
        if arrived < len(jobs.arrival):
            then = min(then, jobs.arrival[arrived])
        if ends.running[0] > 0:
            then = min(then, ends.at[ends.heap[0]])
        pass_time(cluster, course, now, then, held_up)
        now = then
        if now >= rules.end:
            return
        while ends.running[0] > 0 and ends.at[ends.heap[0]] == now:
            _finish(operations, cluster, course, ends.heap[0], now)
        while arrived < len(jobs.arrival) and jobs.arrival[arrived] == now:
            if course.kinds.possible[jobs.kind[arrived]]:
                _wait(course, arrived)
            arrived += 1
        if course.counts[WAITING] > 0:
            _serve(operations, cluster, course, now, order)
        held_up = stuck(cluster, course)


@kernel
def _serve(operations: Any, cluster: Any, course: Course, now: int, order: IntArray) -> None:
    """Starts waiting jobs in order. Strict order ends at the first that fits nowhere, backfill after `depth` ones."""
    looked = 0
    for rank in range(course.kinds.ranks):
        ring = len(course.jobs.kind) + rank
        job = course.queue.after[ring]
        while job != ring:
            if looked >= course.rules.depth:
                return
            later = course.queue.after[job]
            # The first half is what _start would find out; a call with all the arrays costs more than the question.
            known = course.kinds.tried[course.jobs.kind[job]] == course.counts[FREED]
            if known or not _start(operations, cluster, course, job, now, order):
                if course.rules.fifo:
                    return
                looked += 1
            job = later


@kernel
def _start(operations: Any, cluster: Any, course: Course, job: int, now: int, order: IntArray) -> bool:
    kind = course.jobs.kind[job]
    if _hopeless(cluster, course, kind):
        return False
    if not place(operations, cluster, course, job, now, order):
        course.kinds.tried[kind] = course.counts[FREED]
        return False
    slots, jobs = course.slots, course.jobs
    for slot in range(slots.first[job], slots.first[job + 1]):
        link(course, slot)
    leave(course.queue, job)
    course.counts[WAITING] -= 1
    course.counts[WAITING_MILLIGPU] -= course.kinds.milligpu[kind]
    jobs.began[job] = now
    if jobs.first_began[job] < 0:
        jobs.first_began[job] = now
    add_end(course.ends, job, now + jobs.left[job])
    for at in range(course.counts[EVICTED]):
        _send_back(course, course.evicted[at], now)
    return True


@kernel
def _hopeless(cluster: Any, course: Course, kind: int) -> bool:
    """Whether this kind fitted nowhere and nothing was given back since on a node that could take a member."""
    tried, freed = course.kinds.tried[kind], course.counts[FREED]
    if tried < 0 or freed - tried > len(course.freed):
        return False
    for at in range(tried, freed):
        if could_fit(cluster, course, kind, course.freed[at % len(course.freed)]):
            return False
    course.kinds.tried[kind] = freed
    return True


@kernel
def _send_back(course: Course, job: int, now: int) -> None:
    """The job was sent away: what it had not saved is lost, and it waits in its old place."""
    jobs = course.jobs
    lost = work_lost(course, job, now)
    jobs.left[job] -= now - jobs.began[job] - lost
    jobs.lost[job] += lost
    jobs.began[job] = -1
    if now >= course.rules.warm_up:
        jobs.preempted[job] += 1
        course.counts[PREEMPTIONS] += 1
        course.lost[0] += lost * course.kinds.milligpu[jobs.kind[job]]
    drop_end(course.ends, job)
    forget_rows(course, job)
    _wait(course, job)


@kernel
def _finish(operations: Any, cluster: Any, course: Course, job: int, now: int) -> None:
    remove(operations, cluster, course, job)
    course.jobs.finished[job] = now
    course.jobs.left[job] = 0
    course.jobs.began[job] = -1
    drop_end(course.ends, job)
    forget_rows(course, job)


@kernel
def _wait(course: Course, job: int) -> None:
    kind = course.jobs.kind[job]
    enter(course.queue, len(course.jobs.kind) + course.kinds.rank[kind], job)
    course.counts[WAITING] += 1
    course.counts[WAITING_MILLIGPU] += course.kinds.milligpu[kind]
