"""Everything that the event loop reads and writes, as plain tuples of arrays: T jobs of C kinds with M members."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray
from gpuwatch.fit.fleet_fit import members_that_fit
from gpuwatch.model.units import MILLI
from gpuwatch.placement.churn.queue import NOBODY, Ends, Queue, ends_for, queue_for
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.stream import ChurnStream

PARTS = 100  # the curve's points
_FREED = 1024  # rows given back that are remembered, so that a kind that fitted nowhere is looked for only there

# Positions in Course.counts.
FREED, WAITING, WAITING_MILLIGPU, PREEMPTIONS, EVICTED = range(5)


class Rules(NamedTuple):
    """The settings that the loop reads. Times in milliseconds."""

    fifo: bool
    depth: int
    preemption: bool
    checkpoint: int  # 0: never
    end: int
    warm_up: int


class Kinds(NamedTuple):
    """C kinds of job."""

    members: IntArray
    rank: IntArray  # 0 is served first
    milligpu: IntArray  # of all members
    evictable: BoolArray
    possible: BoolArray  # the empty cluster could take it
    tried: IntArray  # how many rows had been given back when it last fitted nowhere; NOBODY: never tried
    ranks: int


class Jobs(NamedTuple):
    """T jobs. Times in milliseconds; NOBODY (-1) is not yet."""

    kind: IntArray
    arrival: IntArray
    left: IntArray  # work still to do, as last saved
    began: IntArray  # the run that goes on
    first_began: IntArray
    finished: IntArray
    lost: IntArray  # work done and lost
    preempted: IntArray  # times, after the warm-up


class Slots(NamedTuple):
    """M members; those of job j are first[j] up to first[j + 1]. Running members of a node are a list from its head."""

    first: IntArray  # (T + 1,)
    job: IntArray  # (M,)
    row: IntArray  # (M,)
    devices: IntArray  # (M, W)
    after: IntArray  # (M,)
    before: IntArray  # (M,)
    head: IntArray  # (N,)


class Integrals(NamedTuple):
    """Amounts x milliseconds in each of the equal parts of the run."""

    used: FloatArray
    idle: FloatArray
    fragment: FloatArray
    waiting: FloatArray
    stuck: FloatArray


class Course(NamedTuple):
    """One run."""

    rules: Rules
    kinds: Kinds
    jobs: Jobs
    slots: Slots
    queue: Queue
    ends: Ends
    parts: Integrals
    freed: IntArray  # the last rows given back, in a ring
    counts: IntArray
    victims: IntArray  # (T,) scratch: whom the cheapest node would lose
    tries: IntArray  # (T,) scratch: whom the node looked at would lose
    costs: IntArray  # (T,) scratch: what each of these would lose
    evicted: IntArray  # (T,) scratch: who left for the job that is being placed
    lost: FloatArray  # (1,) milligpu x milliseconds lost after the warm-up
    capacity: int  # milligpu


def rules_of(settings: ChurnSettings, stream: ChurnStream) -> Rules:
    """The end lies behind the last arrival; it and the warm-up are moved to whole parts of the curve."""
    part = stream.end // PARTS + 1
    return Rules(
        fifo=settings.queue == "fifo",
        depth=settings.depth,
        preemption=settings.preemption,
        checkpoint=round(settings.checkpoint_seconds * MILLI),
        end=part * PARTS,
        warm_up=part * round(settings.warm_up * PARTS),
    )


def course_of(stream: ChurnStream, rules: Rules, columns: Columns, capacity: int) -> Course:
    """Nothing has happened yet."""
    jobs, kinds = len(stream.kind), stream.kinds
    ranks = 1 + max((kind.rank for kind in kinds), default=0)
    members = np.array([kind.members for kind in kinds], dtype=np.int64)
    return Course(
        rules=rules,
        kinds=Kinds(
            members=members,
            rank=np.array([kind.rank for kind in kinds], dtype=np.int64),
            milligpu=np.array([kind.milligpu for kind in kinds], dtype=np.int64),
            evictable=np.array([kind.evictable for kind in kinds], dtype=np.bool_),
            possible=np.array(
                [members_that_fit(columns, kind.shape).sum() >= kind.members for kind in kinds], dtype=np.bool_
            ),
            tried=_nobody(len(kinds)),
            ranks=ranks,
        ),
        jobs=Jobs(
            kind=stream.kind,
            arrival=stream.arrival,
            left=stream.length.copy(),
            began=_nobody(jobs),
            first_began=_nobody(jobs),
            finished=_nobody(jobs),
            lost=np.zeros(jobs, dtype=np.int64),
            preempted=np.zeros(jobs, dtype=np.int64),
        ),
        slots=_slots(members[stream.kind], columns),
        queue=queue_for(jobs, ranks),
        ends=ends_for(jobs),
        parts=Integrals(*(np.zeros(PARTS) for _ in Integrals._fields)),
        freed=np.zeros(_FREED, dtype=np.int64),
        counts=np.zeros(5, dtype=np.int64),
        victims=_nobody(jobs),
        tries=_nobody(jobs),
        costs=np.zeros(jobs, dtype=np.int64),
        evicted=_nobody(jobs),
        lost=np.zeros(1),
        capacity=capacity,
    )


def _slots(members: IntArray, columns: Columns) -> Slots:
    first = np.zeros(len(members) + 1, dtype=np.int64)
    np.cumsum(members, out=first[1:])
    count = int(first[-1])
    return Slots(
        first=first,
        job=np.repeat(np.arange(len(members)), members),
        row=_nobody(count),
        devices=np.full((count, columns.left.shape[1]), NOBODY, dtype=np.int64),
        after=_nobody(count),
        before=_nobody(count),
        head=_nobody(len(columns.names)),
    )


def _nobody(count: int) -> IntArray:
    return np.full(count, NOBODY, dtype=np.int64)
