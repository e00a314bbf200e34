"""The event loop: at each moment first who ends, then who arrives, then one look at the queue."""

from __future__ import annotations

from typing import Any

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.churn.cluster import Operations
from gpuwatch.placement.churn.course import EVICTED, FREED, PREEMPTIONS, WAITING, WAITING_MILLIGPU, Course
from gpuwatch.placement.churn.evict import cheapest_node, could_fit, work_lost
from gpuwatch.placement.churn.queue import add_end, drop_end, enter, leave
from gpuwatch.placement.kernels.jit import kernel


def run(
    find: Any, take: Any, untake: Any, give: Any, again: Any, cluster: Any, course: Course, order: IntArray
) -> None:
    """The whole run, by the five Operations. `order` (N,) tells equal nodes apart, as for placements."""
    operations = Operations(find, take, untake, give, again)
    jobs, ends, rules = course.jobs, course.ends, course.rules
    now, arrived, stuck = 0, 0, 0
    while True:
        then = rules.end
        if arrived < len(jobs.arrival):
            then = min(then, jobs.arrival[arrived])
        if ends.running[0] > 0:
            then = min(then, ends.at[ends.heap[0]])
        _pass_time(cluster, course, now, then, stuck)
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
        stuck = _stuck(cluster, course)


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
    if not _place(operations, cluster, course, job, now, order):
        course.kinds.tried[kind] = course.counts[FREED]
        return False
    slots, jobs = course.slots, course.jobs
    for slot in range(slots.first[job], slots.first[job + 1]):
        _link(course, slot)
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
def _place(operations: Any, cluster: Any, course: Course, job: int, now: int, order: IntArray) -> bool:
    """Books all members or none. Jobs that were sent away for it are in course.evicted, their members given back."""
    slots, kind = course.slots, course.jobs.kind[job]
    course.counts[EVICTED] = 0
    for slot in range(slots.first[job], slots.first[job + 1]):
        row = operations.find(cluster, kind, -1)
        if row < 0 and course.rules.preemption:
            row, count = cheapest_node(cluster, course, kind, now, order)
            for at in range(count):
                _remove(operations, cluster, course, course.victims[at])
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
            _link(course, slot)


@kernel
def _remove(operations: Any, cluster: Any, course: Course, job: int) -> None:
    """Gives back what the job's members hold. They keep their rows until _send_back or _take_back."""
    slots = course.slots
    for slot in range(slots.first[job], slots.first[job + 1]):
        operations.give(cluster, course.jobs.kind[job], slots.row[slot], slots.devices[slot])
        _unlink(course, slot)


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
    _forget_rows(course, job)
    _wait(course, job)


@kernel
def _finish(operations: Any, cluster: Any, course: Course, job: int, now: int) -> None:
    _remove(operations, cluster, course, job)
    course.jobs.finished[job] = now
    course.jobs.left[job] = 0
    course.jobs.began[job] = -1
    drop_end(course.ends, job)
    _forget_rows(course, job)


@kernel
def _forget_rows(course: Course, job: int) -> None:
    """The rows count as given back from now on."""
    for slot in range(course.slots.first[job], course.slots.first[job + 1]):
        course.freed[course.counts[FREED] % len(course.freed)] = course.slots.row[slot]
        course.counts[FREED] += 1
        course.slots.row[slot] = -1


@kernel
def _wait(course: Course, job: int) -> None:
    kind = course.jobs.kind[job]
    enter(course.queue, len(course.jobs.kind) + course.kinds.rank[kind], job)
    course.counts[WAITING] += 1
    course.counts[WAITING_MILLIGPU] += course.kinds.milligpu[kind]


@kernel
def _link(course: Course, slot: int) -> None:
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


@kernel
def _stuck(cluster: Any, course: Course) -> int:
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
def _pass_time(cluster: Any, course: Course, now: int, then: int, stuck: int) -> None:
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
