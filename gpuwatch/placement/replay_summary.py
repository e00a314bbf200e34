"""What the runs of a replay say together: means and deviations over seeds, mean curves, and who pays for a gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import TypeVar

from gpuwatch.model.churn import ChurnRun
from gpuwatch.model.replay import CPU_ONLY, SHARE, ReplayPoint, ReplayRun
from gpuwatch.model.values import value

Run = TypeVar("Run", ReplayRun, ChurnRun)

FRAGMENT_PERCENTS = (40, 80, 95)  # arrived demand at which the published study tells the fragment ratio
# A policy that admits this much less of the largest jobs than another, and allocates more, has bought its gain there.
STARVED_BEYOND_RATIO = 0.02


@value
class Spread:
    """One measure over the runs that have it."""

    mean: float
    deviation: float | None  # of the sample (n - 1); None under two runs
    runs: int


@value
class FragmentSpread:
    """The published F / idle at one point of the curve."""

    arrived_percent: int
    ratio: Spread | None  # None: no run has the point, or nothing was idle there


@value
class AdmissionSpread:
    """Admitted / arrived of the jobs of one size, while no more than 100% of the capacity had arrived."""

    size: str
    ratio: Spread | None  # None: no such job came


@value
class Starved:
    """This policy allocates more than `best_policy` does, and admits clearly fewer of the largest jobs."""

    size: str
    behind_ratio: float
    best_policy: str


@value
class PolicySummary:
    """All runs of one policy on one workload."""

    workload: str
    policy: str
    runs: int
    allocation_ratio_at_100: Spread | None  # None: the streams end before
    allocation_ratio_at_130: Spread | None
    fragment: tuple[FragmentSpread, ...]
    admission: tuple[AdmissionSpread, ...]  # smallest jobs first
    seconds: Spread
    starved: Starved | None = None


@value
class MeanPoint:
    """One point of a mean curve; None where no run has it."""

    arrived_percent: int
    allocation_ratio: float
    fragment_ratio: float | None


@value
class MeanCurve:
    """The mean over seeds of one policy on one workload."""

    workload: str
    policy: str
    points: tuple[MeanPoint, ...]


def summarize(runs: Iterable[ReplayRun]) -> tuple[PolicySummary, ...]:
    """One summary for each policy and workload, in the order in which they first come."""
    summaries = [_summary(group) for group in groups_of(runs)]
    by_workload: dict[str, list[PolicySummary]] = {}
    for each in summaries:
        by_workload.setdefault(each.workload, []).append(each)
    return tuple(replace(each, starved=_starved(each, by_workload[each.workload])) for each in summaries)


def mean_curves(runs: Iterable[ReplayRun]) -> tuple[MeanCurve, ...]:
    """The mean curve of each policy and workload, in the order in which they first come."""
    return tuple(_curve(group) for group in groups_of(runs))


def size_order(size: str) -> tuple[int, int]:
    """Sorts sizes: jobs without a GPU, then shares, then by the number of devices."""
    return (0, 0) if size == CPU_ONLY else (1, 0) if size == SHARE else (2, int(size))


def admission_ratio(run: ReplayRun, size: str) -> float | None:
    """Share of the jobs of `size` that were placed, of those that came within 100% of the capacity."""
    for each in run.admission:
        if each.size == size and each.arrived:
            return each.admitted / each.arrived
    return None


def fragment_ratio(run: ReplayRun, arrived_percent: int) -> float | None:
    """The published F / idle at one point of the curve."""
    return next((each.fragment_ratio for each in run.curve if each.arrived_percent == arrived_percent), None)


def spread(measures: Iterable[float | None]) -> Spread | None:
    """Mean and deviation of the measures that are known; None when none is."""
    known = [each for each in measures if each is not None]
    if not known:
        return None
    return Spread(mean=fmean(known), deviation=stdev(known) if len(known) > 1 else None, runs=len(known))


def groups_of(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs of one policy on one workload together, in the order in which they first come."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.workload, run.policy), []).append(run)
    return list(groups.values())


def _summary(runs: Sequence[ReplayRun]) -> PolicySummary:
    def over(measure: Callable[[ReplayRun], float | None]) -> Spread | None:
        return spread(map(measure, runs))

    def admitted(size: str) -> Spread | None:
        return spread(admission_ratio(run, size) for run in runs)

    def fragments(percent: int) -> Spread | None:
        return spread(fragment_ratio(run, percent) for run in runs)

    seconds = over(lambda run: run.seconds)
    assert seconds is not None  # a group has a run, and every run has its seconds
    sizes = sorted({each.size for run in runs for each in run.admission}, key=size_order)
    return PolicySummary(
        workload=runs[0].workload,
        policy=runs[0].policy,
        runs=len(runs),
        allocation_ratio_at_100=over(lambda run: run.allocation_ratio_at_100),
        allocation_ratio_at_130=over(lambda run: run.allocation_ratio_at_130),
        fragment=tuple(FragmentSpread(arrived_percent=at, ratio=fragments(at)) for at in FRAGMENT_PERCENTS),
        admission=tuple(AdmissionSpread(size=size, ratio=admitted(size)) for size in sizes),
        seconds=seconds,
    )


def _starved(own: PolicySummary, rivals: Sequence[PolicySummary]) -> Starved | None:
    """Against the rival that admits most of the largest jobs; of equal ones, the one that allocates most."""
    size = max((each.size for each in own.admission if each.ratio), key=size_order, default=CPU_ONLY)
    admitted, allocated = _admitted(own, size), _allocated(own)
    if size in (CPU_ONLY, SHARE) or admitted is None or allocated is None:
        return None
    best = max(rivals, key=lambda each: (_admitted(each, size) or 0.0, _allocated(each) or 0.0))
    behind = (_admitted(best, size) or 0.0) - admitted
    if behind <= STARVED_BEYOND_RATIO or allocated <= (_allocated(best) or 0.0):
        return None
    return Starved(size=size, behind_ratio=behind, best_policy=best.policy)


def _admitted(summary: PolicySummary, size: str) -> float | None:
    return next((each.ratio.mean for each in summary.admission if each.size == size and each.ratio), None)


def _allocated(summary: PolicySummary) -> float | None:
    """At the later of the two points that is known."""
    at = summary.allocation_ratio_at_130 or summary.allocation_ratio_at_100
    return at.mean if at else None


def _curve(runs: Sequence[ReplayRun]) -> MeanCurve:
    at: dict[int, list[ReplayPoint]] = {}
    for run in runs:
        for point in run.curve:
            at.setdefault(point.arrived_percent, []).append(point)
    points = tuple(_mean(percent, at[percent]) for percent in sorted(at))
    return MeanCurve(workload=runs[0].workload, policy=runs[0].policy, points=points)


def _mean(percent: int, points: Sequence[ReplayPoint]) -> MeanPoint:
    fragments = [point.fragment_ratio for point in points if point.fragment_ratio is not None]
    return MeanPoint(
        arrived_percent=percent,
        allocation_ratio=fmean(point.allocation_ratio for point in points),
        fragment_ratio=fmean(fragments) if fragments else None,
    )
