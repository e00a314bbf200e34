"""Waiting jobs in order, and running jobs by their end, in arrays: what the event loop keeps its order with.

The queue is one ring for each rank (0 is served first), each sorted by job number, which is the order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.kernels.jit import kernel

NOBODY = -1


class Queue(NamedTuple):
    """T jobs and R ranks; the ring of rank r is closed by the number T + r."""

    after: IntArray  # (T + R,)
    before: IntArray  # (T + R,)


class Ends(NamedTuple):
    """A heap of running jobs; the one on top ends first, of equal ones the one with the lowest number."""

    at: IntArray  # (T,) when each running job ends, milliseconds
    heap: IntArray  # (T,)
    place: IntArray  # (T,) where each job stands in the heap, NOBODY when it does not run
    running: IntArray  # (1,) how many


def queue_for(jobs: int, ranks: int) -> Queue:
    """An empty queue."""
    ring = np.full(jobs + ranks, NOBODY, dtype=np.int64)
    ring[jobs:] = np.arange(jobs, jobs + ranks)
    return Queue(after=ring, before=ring.copy())


def ends_for(jobs: int) -> Ends:
    """Nobody runs."""
    return Ends(
        at=np.zeros(jobs, dtype=np.int64),
        heap=np.zeros(jobs, dtype=np.int64),
        place=np.full(jobs, NOBODY, dtype=np.int64),
        running=np.zeros(1, dtype=np.int64),
    )


@kernel
def enter(queue: Queue, ring: int, job: int) -> None:
    """Puts the job into the ring behind those that arrived earlier. Looks from the end: most jobs are new."""
    earlier = queue.before[ring]
    while earlier != ring and earlier > job:
        earlier = queue.before[earlier]
    later = queue.after[earlier]
    queue.after[earlier], queue.before[job] = job, earlier
    queue.after[job], queue.before[later] = later, job


@kernel
def leave(queue: Queue, job: int) -> None:
    """Takes the job out of its ring."""
    queue.after[queue.before[job]] = queue.after[job]
    queue.before[queue.after[job]] = queue.before[job]


@kernel
def add_end(ends: Ends, job: int, at: int) -> None:
    """The job runs until `at`."""
    ends.at[job] = at
    place = ends.running[0]
    ends.running[0] += 1
    _put(ends, job, place)
    _rise(ends, place)


@kernel
def drop_end(ends: Ends, job: int) -> None:
    """The job does not run any more."""
    hole = ends.place[job]
    ends.place[job] = -1
    ends.running[0] -= 1
    last = ends.running[0]
    if hole != last:
        _put(ends, ends.heap[last], hole)
        _rise(ends, hole)
        _sink(ends, hole)


@kernel
def _put(ends: Ends, job: int, place: int) -> None:
    ends.heap[place] = job
    ends.place[job] = place


@kernel
def _sooner(ends: Ends, place: int, other: int) -> bool:
    job, rival = ends.heap[place], ends.heap[other]
    if ends.at[job] != ends.at[rival]:
        return bool(ends.at[job] < ends.at[rival])
    return bool(job < rival)


@kernel
def _swap(ends: Ends, place: int, other: int) -> None:
    job, rival = ends.heap[place], ends.heap[other]
    _put(ends, rival, place)
    _put(ends, job, other)


@kernel
def _rise(ends: Ends, place: int) -> None:
    while place > 0 and _sooner(ends, place, (place - 1) // 2):
        _swap(ends, place, (place - 1) // 2)
        place = (place - 1) // 2


@kernel
def _sink(ends: Ends, place: int) -> None:
    while True:
        least = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < ends.running[0] and _sooner(ends, child, least):
                least = child
        if least == place:
            return
        _swap(ends, place, least)
        place = least
