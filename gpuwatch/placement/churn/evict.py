"""Who would have to leave so that a member fits: on one node each, whoever loses least work.

On a node, jobs of lower rank are given up from the cheapest on until the member fits, then spared again from the
dearest on where it fits without. What remains is a set of which nobody can be spared; a cheaper set may exist where
several small jobs stand against a large one.
"""

from __future__ import annotations

from typing import Any

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.churn.course import Course
from gpuwatch.placement.kernels.arrays import Ask, ask_at
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import fits

_NO_BOUND = 2**62


@kernel
def work_lost(course: Course, job: int, now: int) -> int:
    """Milliseconds of work that the job would have to do again if it left now."""
    done: int = now - course.jobs.began[job]
    return done % course.rules.checkpoint if course.rules.checkpoint > 0 else done


@kernel
def cost(course: Course, job: int, now: int) -> int:
    """Lost work in milligpu x milliseconds; a job without devices counts as a thousandth of one."""
    price: int = work_lost(course, job, now) * max(course.kinds.milligpu[course.jobs.kind[job]], 1)
    return price


@kernel
def ask_of(cluster: Any, kind: int) -> Ask:
    """What one member of this kind asks for."""
    return ask_at(cluster.asks, cluster.ask[kind], cluster.memory[kind])


@kernel
def fits_now(cluster: Any, kind: int, row: int) -> bool:
    """Whether one member fits on the node, memory included."""
    ask = ask_of(cluster, kind)
    return bool(cluster.state.memory_free[row] >= ask.memory) and fits(cluster.state, ask, row)


@kernel
def could_fit(cluster: Any, course: Course, kind: int, row: int) -> bool:
    """Whether one member fits on the node now, or would if every job there left that may be sent away for it."""
    if fits_now(cluster, kind, row):
        return True
    if not course.rules.preemption or not _has_devices(cluster, kind, row):
        return False
    _lift_all(cluster, course, kind, row, 1)
    ok = fits_now(cluster, kind, row)
    _lift_all(cluster, course, kind, row, -1)
    return ok


@kernel
def _has_devices(cluster: Any, kind: int, row: int) -> bool:
    """Whether the empty node has the devices: most nodes cannot take a large member whoever leaves."""
    state, ask = cluster.state, ask_of(cluster, kind)
    found = 0
    for device in range(state.left.shape[1]):
        if state.usable[row, device] and (ask.anything or ask.accepts[state.model[row, device]]):
            found += 1
    return bool(found >= ask.gpus)


@kernel
def _lift_all(cluster: Any, course: Course, kind: int, row: int, sign: int) -> None:
    """_lift() of every member on the node that may leave for this kind."""
    slot = course.slots.head[row]
    while slot >= 0:
        own = course.jobs.kind[course.slots.job[slot]]
        if _may_leave(course, own, kind):
            _lift_slot(cluster, course, own, slot, row, sign)
        slot = course.slots.after[slot]


@kernel
def _may_leave(course: Course, own: int, kind: int) -> bool:
    return bool(course.kinds.rank[own] > course.kinds.rank[kind]) and bool(course.kinds.evictable[own])


@kernel
def cheapest_node(cluster: Any, course: Course, kind: int, now: int, order: IntArray) -> tuple[int, int]:
    """(row, how many) with the jobs in course.victims; row -1 when no node can be freed.

    Of nodes that cost the same the one with fewer jobs to send away, then the first in `order`.
    """
    found, least, fewest = -1, _NO_BOUND, 0
    for row in range(len(course.slots.head)):
        count = _sentenced(cluster, course, kind, row, now, least)
        if count == 0:
            continue
        total = 0
        for at in range(count):
            total += cost(course, course.tries[at], now)
        closer = count < fewest or (count == fewest and order[row] < order[found])
        if total < least or (total == least and closer):
            found, least, fewest = row, total, count
            for at in range(count):
                course.victims[at] = course.tries[at]
    return found, fewest


@kernel
def _sentenced(cluster: Any, course: Course, kind: int, row: int, now: int, bound: int) -> int:
    """How many jobs in course.tries would have to leave this node; 0 when none helps or it costs over `bound`."""
    count = _candidates(course, kind, row, now, bound)
    if count == 0 or not could_fit(cluster, course, kind, row):
        return 0
    gone, ok = 0, False
    while gone < count and not ok:
        _lift(cluster, course, course.tries[gone], row, 1)
        gone += 1
        ok = fits_now(cluster, kind, row)
    lifted = gone
    if ok:
        for at in range(lifted - 1, -1, -1):
            job = course.tries[at]
            _lift(cluster, course, job, row, -1)
            if fits_now(cluster, kind, row):
                course.costs[at] = -1  # spared
            else:
                _lift(cluster, course, job, row, 1)
    kept = 0
    for at in range(lifted):
        job = course.tries[at]
        if course.costs[at] >= 0:
            _lift(cluster, course, job, row, -1)
            course.tries[kept] = job
            kept += 1
    return kept if ok else 0


@kernel
def _candidates(course: Course, kind: int, row: int, now: int, bound: int) -> int:
    """Fills course.tries with the jobs that may leave the node for at most `bound` each, by cost and then by number."""
    count = 0
    slot = course.slots.head[row]
    while slot >= 0:
        job = course.slots.job[slot]
        if _may_leave(course, course.jobs.kind[job], kind):
            price = cost(course, job, now)
            if price <= bound:
                count = _insert(course, job, price, count)
        slot = course.slots.after[slot]
    return count


@kernel
def _insert(course: Course, job: int, price: int, count: int) -> int:
    at = count
    while at > 0 and (course.costs[at - 1] > price or (course.costs[at - 1] == price and course.tries[at - 1] > job)):
        at -= 1
    if at > 0 and course.tries[at - 1] == job:
        return count  # another member of a gang
    for later in range(count, at, -1):
        course.tries[later], course.costs[later] = course.tries[later - 1], course.costs[later - 1]
    course.tries[at], course.costs[at] = job, price
    return count + 1


@kernel
def _lift(cluster: Any, course: Course, job: int, row: int, sign: int) -> None:
    """Adds what the job's members hold on the node to what is free there, or takes it away again."""
    kind = course.jobs.kind[job]
    for slot in range(course.slots.first[job], course.slots.first[job + 1]):
        if course.slots.row[slot] == row:
            _lift_slot(cluster, course, kind, slot, row, sign)


@kernel
def _lift_slot(cluster: Any, course: Course, kind: int, slot: int, row: int, sign: int) -> None:
    state, devices, at = cluster.state, course.slots.devices, cluster.ask[kind]
    state.cpu_free[row] += sign * cluster.asks.cpu[at]
    state.memory_free[row] += sign * cluster.memory[kind]
    for place in range(devices.shape[1]):
        if devices[slot, place] < 0:
            break
        state.left[row, devices[slot, place]] += sign * cluster.asks.share[at]
