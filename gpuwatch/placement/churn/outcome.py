"""From a course that has come to its end to what it says: counts, the curve, and waits by size."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpuwatch.fit.columns import BoolArray, FloatArray, IntArray
from gpuwatch.model.churn import GANG, ChurnPoint, ChurnSize
from gpuwatch.model.replay import CPU_ONLY, SHARE
from gpuwatch.model.units import MILLI
from gpuwatch.placement.churn.course import PARTS, Course
from gpuwatch.placement.churn.stream import ChurnStream, Kind
from gpuwatch.placement.replay_curve import size_label

# Told for every run, so that a size of which no job arrived says so instead of being absent.
USUAL_SIZES = (CPU_ONLY, SHARE, "1", "2", "4", "8", GANG)


def curve_of(course: Course) -> tuple[ChurnPoint, ...]:
    """One point for each part of the run."""
    parts, width = course.parts, course.rules.end / PARTS
    return tuple(
        ChurnPoint(
            time_seconds=(at + 1) * width / MILLI,
            utilization_ratio=float(parts.used[at] / (course.capacity * width)),
            fragment_ratio=share(parts.fragment[at], parts.idle[at]),
            waiting_milligpu=float(parts.waiting[at] / width),
            stuck_milligpu=float(parts.stuck[at] / width),
        )
        for at in range(PARTS)
    )


def steady(course: Course, amounts: FloatArray) -> float:
    """The time-weighted mean of one of the integrals after the warm-up."""
    first = course.rules.warm_up * PARTS // course.rules.end
    return float(amounts[first:].sum() / (course.rules.end - course.rules.warm_up))


def share(part: float, whole: float) -> float | None:
    """part / whole; None when there is no whole."""
    return float(part / whole) if whole > 0 else None


def offered_load(stream: ChurnStream, course: Course) -> float:
    """What the jobs would hold of the capacity, on the mean after the warm-up, if each started when it came.

    Jobs that could never run are left out.
    """
    begin, end = course.rules.warm_up, course.rules.end
    milligpu = (course.kinds.milligpu * course.kinds.possible)[stream.kind]
    held = np.minimum(stream.arrival + stream.length, end) - np.maximum(stream.arrival, begin)
    return float((milligpu * held.clip(min=0)).sum(dtype=np.float64) / (course.capacity * (end - begin)))


def sizes_of(stream: ChurnStream, course: Course) -> tuple[ChurnSize, ...]:
    """By size, of the jobs that arrived after the warm-up and could run on the empty cluster."""
    labels = np.array([kind_label(kind) for kind in stream.kinds] or [""])[stream.kind]
    counted = (stream.arrival >= course.rules.warm_up) & course.kinds.possible[stream.kind]
    return tuple(_size(size, counted & (labels == size), course) for size in _sizes(labels.tolist()))


def kind_label(kind: Kind) -> str:
    """gang, cpu, share, or the number of whole devices."""
    return GANG if kind.members > 1 else size_label(kind.shape)


def _sizes(labels: Iterable[str]) -> list[str]:
    """The usual ones and all others that occur: CPU-only, shares, by devices, gangs."""
    found = {*labels, *USUAL_SIZES}
    whole = sorted((size for size in found if size.isdigit()), key=int)
    return [CPU_ONLY, SHARE, *whole, GANG]


def _size(size: str, these: BoolArray, course: Course) -> ChurnSize:
    jobs = course.jobs
    began = jobs.first_began[these]
    waits = (np.where(began >= 0, began, course.rules.end) - jobs.arrival[these]) / MILLI
    return ChurnSize(
        size=size,
        arrived=int(these.sum()),
        started=int((began >= 0).sum()),
        finished=int((jobs.finished[these] >= 0).sum()),
        preempted=int((jobs.preempted[these] > 0).sum()),
        still_waiting=int((began < 0).sum()),
        wait_p50_seconds=_rank(waits, 50),
        wait_p95_seconds=_rank(waits, 95),
        wait_max_seconds=_rank(waits, 100),
    )


def _rank(waits: FloatArray, percent: int) -> float | None:
    """The wait that `percent` of the jobs did not exceed: one that occurred, not a value between two."""
    if not len(waits):
        return None
    ordered: FloatArray = np.sort(waits)
    return float(ordered[max(0, -(-percent * len(ordered) // 100) - 1)])


def counts(course: Course) -> dict[str, int]:
    """Where every job of the run stands at its end."""
    jobs = course.jobs
    possible = course.kinds.possible[jobs.kind]
    finished, running = jobs.finished >= 0, jobs.began >= 0
    waiting: BoolArray = possible & ~finished & ~running
    first: IntArray = jobs.first_began
    return {
        "arrived": len(jobs.kind),
        "finished": int(finished.sum()),
        "running": int(running.sum()),
        "waiting": int(waiting.sum()),
        "never_started": int((waiting & (first < 0)).sum()),
        "refused": int((~possible).sum()),
    }
