"""The jobs of a run with churn: who comes when, for how long, in which order of service. Fixed by the seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpuwatch.errors import InputError
from gpuwatch.fit.columns import IntArray
from gpuwatch.model.jobs import DemandShape, Job
from gpuwatch.model.units import MILLI
from gpuwatch.placement.churn.lengths import LENGTH, Lengths, rng_for
from gpuwatch.placement.churn.settings import DEFAULT_LOAD, DEFAULT_TURNOVERS, ChurnSettings
from gpuwatch.traces.trace_format import JobTrace

MAX_JOBS = 5_000_000  # of one run: more would not fit into memory by intent
# Where no priority is told, the kind speaks: whoever waits on an answer goes before whoever waits for a result.
_RANKS = {"inference": 1, "interactive": 1}
_ORDER, _GAP, _GANG = "order", "gap", "gang"


@dataclass(frozen=True, slots=True)
class Kind:
    """What jobs share that the queue treats alike."""

    shape: DemandShape
    members: int
    rank: int  # 0 is served first
    evictable: bool

    @property
    def milligpu(self) -> int:
        """Of all members together."""
        return self.shape.milligpu * self.members


@dataclass(frozen=True, slots=True)
class ChurnStream:
    """T jobs in order of arrival. Times in milliseconds since the run began."""

    kinds: tuple[Kind, ...]
    kind: IntArray  # (T,) position in `kinds`
    arrival: IntArray  # (T,)
    length: IntArray  # (T,) of the work
    initial: int  # of these, how many come at once at the beginning
    end: int
    jobs_without_time: int
    jobs_left_out: int


def churn_stream(trace: JobTrace, capacity_milligpu: int, settings: ChurnSettings, seed: int) -> ChurnStream:
    """The stream of one run. InputError for lists without GPU jobs, or without the times that are asked for."""
    if not any(job.shape.milligpu for job in trace.jobs):
        raise InputError("no job of the trace asks for a GPU", todo="name another workload")
    jobs = sorted(trace.jobs, key=lambda job: job.id)
    told = [trace.duration_seconds.get(job.id) or None for job in jobs]  # not a whole second: as good as not told
    without = sum(job.submitted_at is None or length is None for job, length in zip(jobs, told, strict=True))
    if settings.times != "drawn" and not any(told):
        raise InputError(
            f"the list {trace.workload} of {trace.name} does not tell how long a job ran",
            todo="draw the times: --times drawn",
        )
    kinds = _Kinds(jobs, settings, seed)
    if settings.times == "trace":
        return _as_told(jobs, told, kinds, without, seed)
    return _drawn(jobs, told, kinds, capacity_milligpu, settings, without, seed)


class _Kinds:
    """Numbers the kinds as they come; draws which jobs of several devices are gangs."""

    def __init__(self, jobs: Sequence[Job], settings: ChurnSettings, seed: int) -> None:
        levels = sorted({_level(job) for job in jobs}, reverse=True)
        self._rank = {level: at if settings.priorities else 0 for at, level in enumerate(levels)}
        self._settings = settings
        self._rng = rng_for(seed, _GANG)
        self.number: dict[Kind, int] = {}

    def mean_milligpu(self, job: Job) -> float:
        """What a job like this one asks for, over the draw whether it is a gang."""
        members = float(len(job.members))
        if _can_be_bound(job):
            members += self._settings.gang_fraction * (self._settings.gang_members - members)
        return members * job.shape.milligpu

    def of(self, job: Job) -> int:
        members = len(job.members)
        if _can_be_bound(job) and self._rng.random() < self._settings.gang_fraction:
            members = self._settings.gang_members
        evictable = job.preemptible is not False and not job.protected
        kind = Kind(job.shape, members, self._rank[_level(job)], evictable)
        return self.number.setdefault(kind, len(self.number))


def _can_be_bound(job: Job) -> bool:
    return len(job.members) == 1 and job.shape.gpus > 1


def _level(job: Job) -> tuple[int, int]:
    """Higher is served first. Told priorities stand above and below those that none tells, which count as 0."""
    return job.priority or 0, 0 if job.priority is not None else _RANKS.get(job.kind, 0)


def _drawn(
    jobs: Sequence[Job],
    told: Sequence[int | None],
    kinds: _Kinds,
    capacity: int,
    settings: ChurnSettings,
    without: int,
    seed: int,
) -> ChurnStream:
    """Poisson arrivals at the load, on a cluster whose jobs of before stand at the door when it opens."""
    lengths = Lengths(jobs, told, settings, seed)
    milligpu = [kinds.mean_milligpu(job) for job in jobs]
    work = sum(m * lengths.mean(at) for at, m in enumerate(milligpu)) / len(jobs)  # milligpu x seconds of a mean job
    mean = sum(lengths.mean(at) for at in range(len(jobs))) / len(jobs)
    rate = (settings.load or DEFAULT_LOAD) * capacity / work  # jobs a second
    span = (settings.turnovers or DEFAULT_TURNOVERS) * mean
    initial = round(rate * mean)  # Little's law
    _check_count(initial + rate * span)
    order, gaps = _shuffled(len(jobs), seed), rng_for(seed, _GAP)
    standing = lengths.standing(initial, order)
    rows = [(kinds.of(jobs[at]), 0, _milliseconds(lengths.left_of(at))) for at in standing]
    now = gaps.expovariate(rate)
    while now <= span:
        at = next(order)
        rows.append((kinds.of(jobs[at]), _milliseconds(now), _milliseconds(lengths.of(at))))
        now += gaps.expovariate(rate)
    return _stream(rows, kinds, initial, _milliseconds(span), without, left_out=0)


def _as_told(
    jobs: Sequence[Job],
    told: Sequence[int | None],
    kinds: _Kinds,
    without: int,
    seed: int,
) -> ChurnStream:
    """Arrivals and durations of the trace; a duration that it does not tell is drawn from those that it tells."""
    known, rng = [length for length in told if length], rng_for(seed, LENGTH)
    came = [(job.submitted_at, at) for at, job in enumerate(jobs) if job.submitted_at is not None]
    if not came:
        raise InputError("no job of the list tells when it arrived", todo="draw the times: --times drawn")
    came.sort()
    first = came[0][0]
    rows = []
    for moment, at in came:
        length = told[at] or known[rng.randrange(len(known))]
        rows.append((kinds.of(jobs[at]), _milliseconds((moment - first).total_seconds()), _milliseconds(length)))
    return _stream(rows, kinds, 0, max(1, rows[-1][1]), without, left_out=len(jobs) - len(came))


def _stream(
    rows: Sequence[tuple[int, int, int]], kinds: _Kinds, initial: int, end: int, without: int, left_out: int
) -> ChurnStream:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    return ChurnStream(
        kinds=tuple(kinds.number),
        kind=table[:, 0].copy(),
        arrival=table[:, 1].copy(),
        length=table[:, 2].copy(),
        initial=initial,
        end=end,
        jobs_without_time=without,
        jobs_left_out=left_out,
    )


def _shuffled(count: int, seed: int) -> Iterator[int]:
    """The list in a random order, then in another, and so on: every job comes about equally often."""
    rng, places = rng_for(seed, _ORDER), list(range(count))
    while True:
        rng.shuffle(places)
        yield from places


def _check_count(jobs: float) -> None:
    if jobs > MAX_JOBS:
        raise InputError(
            f"about {jobs:,.0f} jobs would arrive, and {MAX_JOBS:,} is the most that a run takes",
            todo="choose fewer --turnovers or a lower --load",
        )


def _milliseconds(seconds: float) -> int:
    """At least one for anything that takes time."""
    return max(1, round(seconds * MILLI)) if seconds > 0 else 0
