"""What runs with churn say together: means and deviations over seeds, and mean curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from gpuwatch.model.churn import GANG, ChurnPoint, ChurnRun, ChurnSize
from gpuwatch.model.values import value
from gpuwatch.placement.replay_summary import Spread, groups_of, size_order, spread


@value
class SizeSpread:
    """Jobs of one size that arrived after the warm-up, over the runs."""

    size: str
    arrived: int  # over all runs together
    started_ratio: Spread | None  # None here and below: no such job came in any run
    wait_p50_seconds: Spread | None
    wait_p95_seconds: Spread | None
    wait_max_seconds: Spread | None


@value
class ChurnSummary:
    """All runs of one policy on one workload. Measures are those of the steady part."""

    workload: str
    policy: str
    runs: int
    offered_load_ratio: Spread
    utilization_ratio: Spread
    fragment_ratio: Spread | None  # None: nothing was idle
    waiting_milligpu: Spread
    stuck_milligpu: Spread
    preempted_jobs: Spread
    lost_gpu_hours: Spread
    sizes: tuple[SizeSpread, ...]
    seconds: Spread


@value
class MeanChurnCurve:
    """The mean over seeds of one policy on one workload, part by part; the parts of all runs are equally many."""

    workload: str
    policy: str
    points: tuple[ChurnPoint, ...]


def summarize_churn(runs: Iterable[ChurnRun]) -> tuple[ChurnSummary, ...]:
    """One summary for each policy and workload, in the order in which they first come."""
    return tuple(_summary(group) for group in groups_of(runs))


def mean_churn_curves(runs: Iterable[ChurnRun]) -> tuple[MeanChurnCurve, ...]:
    """The mean curve of each policy and workload, in the order in which they first come."""
    return tuple(
        MeanChurnCurve(
            workload=group[0].workload,
            policy=group[0].policy,
            points=tuple(_mean(points) for points in zip(*(run.curve for run in group), strict=True)),
        )
        for group in groups_of(runs)
    )


def size_rank(size: str) -> tuple[int, int]:
    """Sorts sizes as replays do, gangs last."""
    return (3, 0) if size == GANG else size_order(size)


def _summary(runs: Sequence[ChurnRun]) -> ChurnSummary:
    def over(measure: Callable[[ChurnRun], float]) -> Spread:
        found = spread(map(measure, runs))
        assert found is not None  # a group has a run
        return found

    sizes = sorted({each.size for run in runs for each in run.sizes}, key=size_rank)
    return ChurnSummary(
        workload=runs[0].workload,
        policy=runs[0].policy,
        runs=len(runs),
        offered_load_ratio=over(lambda run: run.offered_load_ratio),
        utilization_ratio=over(lambda run: run.utilization_ratio),
        fragment_ratio=spread(run.fragment_ratio for run in runs),
        waiting_milligpu=over(lambda run: run.waiting_milligpu),
        stuck_milligpu=over(lambda run: run.stuck_milligpu),
        preempted_jobs=over(lambda run: run.preempted_jobs),
        lost_gpu_hours=over(lambda run: run.lost_gpu_hours),
        sizes=tuple(_size(size, [each for run in runs for each in run.sizes if each.size == size]) for size in sizes),
        seconds=over(lambda run: run.seconds),
    )


def _size(size: str, found: Sequence[ChurnSize]) -> SizeSpread:
    return SizeSpread(
        size=size,
        arrived=sum(each.arrived for each in found),
        started_ratio=spread(each.started / each.arrived if each.arrived else None for each in found),
        wait_p50_seconds=spread(each.wait_p50_seconds for each in found),
        wait_p95_seconds=spread(each.wait_p95_seconds for each in found),
        wait_max_seconds=spread(each.wait_max_seconds for each in found),
    )


def _mean(points: Sequence[ChurnPoint]) -> ChurnPoint:
    known = [point.fragment_ratio for point in points if point.fragment_ratio is not None]
    return ChurnPoint(
        time_seconds=fmean(point.time_seconds for point in points),
        utilization_ratio=fmean(point.utilization_ratio for point in points),
        fragment_ratio=fmean(known) if known else None,
        waiting_milligpu=fmean(point.waiting_milligpu for point in points),
        stuck_milligpu=fmean(point.stuck_milligpu for point in points),
    )
