"""Placement policies compared under arrivals and departures: utilization, waits by size, who was sent away, curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpuwatch.model.churn import ChurnPoint, ChurnRun
from gpuwatch.model.units import HOUR_SECONDS, MILLI
from gpuwatch.placement.churn.settings import DEFAULT_LOAD, ChurnSettings
from gpuwatch.placement.churn.summary import ChurnSummary, MeanChurnCurve, SizeSpread, size_rank
from gpuwatch.render.plain import plain
from gpuwatch.render.report import Cell, Column, Curve, Lines, Plot, Report, Row, Table
from gpuwatch.render.reports.replay_parts import NAMES, over_seeds, size_title, spread_cells
from gpuwatch.render.text import number

_MINUTE_SECONDS = 60
# Of one run, in the document and in csv: what a program may want beside the curve and the sizes.
_COUNTS = ("initial", "arrived", "finished", "running", "waiting", "never_started", "refused")
_MEASURES = (
    *("offered_load_ratio", "utilization_ratio", "fragment_ratio", "waiting_milligpu", "waiting_milligpu_at_end"),
    *("stuck_milligpu", "preempted_jobs", "preemptions", "lost_gpu_hours"),
)
_SIZE_KEYS = ("arrived", "started", "finished", "preempted", "wait_p50_seconds", "wait_p95_seconds", "wait_max_seconds")


def churn_report(
    runs: Sequence[ChurnRun],
    summaries: Sequence[ChurnSummary],
    curves: Sequence[MeanChurnCurve],
    settings: ChurnSettings,
) -> Report:
    """What `gpuwatch replay --protocol churn` prints."""
    sizes = _sizes_that_came(summaries)
    trace = ", ".join(sorted({run.trace for run in runs})) or "nothing"
    return Report(
        title=f"Replay of {trace} with departures",
        document=_document(runs, summaries, settings),
        sections=(
            Lines(title="", lines=tuple(_sentences(runs, trace, settings))),
            Table(title="Utilization and waiting", columns=_capacity_columns(), rows=_capacity_rows(summaries)),
            *_by_size(summaries, sizes),
            *_plots(curves),
        ),
        flat=_flat(runs),
    )


def _sizes_that_came(summaries: Iterable[ChurnSummary]) -> list[str]:
    return sorted({size.size for each in summaries for size in each.sizes if size.arrived}, key=size_rank)


# -- what was done ----------------------------------------------------------------------------------------------------


def _sentences(runs: Sequence[ChurnRun], trace: str, settings: ChurnSettings) -> Iterable[str]:
    if not runs:
        return
    yield _times(trace, settings)
    yield _order(settings)
    first, over = runs[0], over_seeds(run.seed for run in runs)
    yield (
        f"Measured from {_hours(first.warm_up_seconds)} to {_hours(first.span_seconds)} h; {over};"
        " ± is the standard deviation of the sample."
    )
    yield (
        "Waits count from arrival to the first start. A job that still waits at the end counts with the wait so far."
        " Stuck: waiting GPUs that the idle ones could serve by their sum while no node can."
    )
    without = {run.workload: run for run in runs if run.jobs_without_time and settings.times != "drawn"}
    for workload, run in without.items():
        drawn = run.jobs_without_time - run.jobs_left_out
        yield (
            f"{workload}: {run.jobs_without_time:,} jobs of the list do not tell all their times: {drawn:,} run for"
            f" durations drawn from the others, {run.jobs_left_out:,} are left out."
        )


def _times(trace: str, settings: ChurnSettings) -> str:
    if settings.times == "trace":
        return f"Jobs of {trace} arrive, run and leave as the trace tells."
    ran = (
        "as long as the trace tells"
        if settings.times == "durations"
        else f"for log-normal times (median {number(settings.median_seconds)} s, sigma {number(settings.sigma)})"
    )
    load = _percent_text(settings.load or DEFAULT_LOAD)
    return f"Jobs of {trace} arrive at random, run {ran} and leave; they ask for {load} of the GPU time."


def _order(settings: ChurnSettings) -> str:
    queue = (
        f"any of the first {settings.depth:,} waiting jobs starts when it fits"
        if settings.queue == "backfill"
        else "no waiting job starts before the ones ahead of it"
    )
    ranks = "by priority and arrival" if settings.priorities else "by arrival"
    lost = (
        f"keeps its work up to the last of its checkpoints, {number(settings.checkpoint_seconds)} s apart"
        if settings.checkpoint_seconds
        else "loses its work"
    )
    leaves = f"a job that has to leave for a higher one {lost}" if settings.preemption else "nobody has to leave"
    return f"The queue is ordered {ranks}: {queue}; {leaves}."


def _percent_text(ratio: float) -> str:
    return f"{number(100 * ratio)}%"


def _hours(seconds: float) -> str:
    return number(seconds / HOUR_SECONDS, 1)


# -- tables -----------------------------------------------------------------------------------------------------------


def _measure(key: str, title: str, unit: str, digits: int, *, wide: bool = False) -> tuple[Column, Column]:
    deviation = Column(f"{key}_deviation", "±", unit, digits=digits, wide=True)
    return Column(key, title, unit, digits=digits, wide=wide), deviation


def _capacity_columns() -> tuple[Column, ...]:
    used, used_deviation = _measure("used", "Allocated", "%", 2)
    return (
        *NAMES,
        Column("runs", "Runs"),
        *_measure("load", "Offered", "%", 1, wide=True),
        used,
        Column(used_deviation.key, used_deviation.title, used_deviation.unit, digits=2),
        *_measure("fragment", "Fragment of idle", "%", 1),
        *_measure("waiting", "Waiting", "GPUs", 1),
        *_measure("stuck", "Stuck", "GPUs", 1),
        *_measure("preempted", "Sent away", "jobs", 1),
        *_measure("lost", "Lost work", "GPU-h", 1),
        *_measure("seconds", "Time", "s", 2),
    )


def _capacity_rows(summaries: Iterable[ChurnSummary]) -> tuple[Row, ...]:
    return tuple(
        {
            "workload": each.workload,
            "policy": each.policy,
            "runs": each.runs,
            **spread_cells("load", each.offered_load_ratio, 100),
            **spread_cells("used", each.utilization_ratio, 100),
            **spread_cells("fragment", each.fragment_ratio, 100),
            **spread_cells("waiting", each.waiting_milligpu, 1 / MILLI),
            **spread_cells("stuck", each.stuck_milligpu, 1 / MILLI),
            **spread_cells("preempted", each.preempted_jobs, 1),
            **spread_cells("lost", each.lost_gpu_hours, 1),
            **spread_cells("seconds", each.seconds, 1),
        }
        for each in summaries
    )


def _by_size(summaries: Sequence[ChurnSummary], sizes: Sequence[str]) -> Iterable[Table]:
    if not sizes:
        return
    yield Table(title="Wait until started, by job size", columns=_wait_columns(sizes), rows=_wait_rows(summaries))
    yield Table(title="Started, by job size", columns=_started_columns(sizes), rows=_started_rows(summaries))


def _wait_columns(sizes: Iterable[str]) -> tuple[Column, ...]:
    columns = [*NAMES]
    for size in sizes:
        columns += [
            Column(f"{size}_p50", f"{size_title(size)} p50", "min", digits=1, wide=True),
            Column(f"{size}_p95", f"{size_title(size)} p95", "min", digits=1),
            Column(f"{size}_max", f"{size_title(size)} max", "min", digits=1, wide=True),
        ]
    return tuple(columns)


def _wait_rows(summaries: Iterable[ChurnSummary]) -> tuple[Row, ...]:
    def cells(size: SizeSpread) -> dict[str, Cell]:
        waits = {"p50": size.wait_p50_seconds, "p95": size.wait_p95_seconds, "max": size.wait_max_seconds}
        return {f"{size.size}_{key}": wait.mean / _MINUTE_SECONDS for key, wait in waits.items() if wait}

    return _size_rows(summaries, cells)


def _started_columns(sizes: Iterable[str]) -> tuple[Column, ...]:
    columns = [*NAMES]
    for size in sizes:
        columns += _measure(f"started_{size}", size_title(size), "%", 1)
    return tuple(columns)


def _started_rows(summaries: Iterable[ChurnSummary]) -> tuple[Row, ...]:
    return _size_rows(summaries, lambda size: spread_cells(f"started_{size.size}", size.started_ratio, 100))


def _size_rows(summaries: Iterable[ChurnSummary], cells: Callable[[SizeSpread], dict[str, Cell]]) -> tuple[Row, ...]:
    return tuple(
        {
            "workload": each.workload,
            "policy": each.policy,
            **{key: cell for size in each.sizes for key, cell in cells(size).items()},
        }
        for each in summaries
    )


# -- curves -----------------------------------------------------------------------------------------------------------


def _plots(curves: Sequence[MeanChurnCurve]) -> Iterable[Plot]:
    measures: tuple[tuple[str, str, Callable[[ChurnPoint], float | None]], ...] = (
        ("allocated", "% of the capacity", lambda at: 100 * at.utilization_ratio),
        ("fragment of what is idle", "%", lambda at: None if at.fragment_ratio is None else 100 * at.fragment_ratio),
        ("waiting", "GPUs", lambda at: at.waiting_milligpu / MILLI),
        ("stuck", "GPUs", lambda at: at.stuck_milligpu / MILLI),
    )
    for workload in dict.fromkeys(each.workload for each in curves):
        own = [each for each in curves if each.workload == workload and each.points]
        if not own:
            continue
        span = max(each.points[-1].time_seconds for each in own)
        for title, unit, measured in measures:
            yield Plot(
                title=f"{workload}: {title}",
                x_title=f"time, % of {_hours(span)} h",
                y_unit=unit,
                curves=tuple(Curve(each.policy, _points(each, span, measured)) for each in own),
            )


def _points(
    curve: MeanChurnCurve, span: float, measured: Callable[[ChurnPoint], float | None]
) -> tuple[tuple[float, float | None], ...]:
    """By the end of each part, in percent of the longest run."""
    return tuple((round(100 * at.time_seconds / span, 3), measured(at)) for at in curve.points)


# -- for programs -----------------------------------------------------------------------------------------------------


def _document(runs: Sequence[ChurnRun], summaries: Sequence[ChurnSummary], settings: ChurnSettings) -> dict[str, Any]:
    return {
        "schema": "gpuwatch.replay/1",
        "protocol": "churn",
        "settings": plain(settings),
        "summaries": plain(list(summaries)),
        "items": [plain(run) for run in runs],
        "skipped": [missing for run in runs for missing in _missing(run)],
    }


def _missing(run: ChurnRun) -> Iterable[dict[str, Any]]:
    """Why a number that others have is null here."""
    own = {"workload": run.workload, "policy": run.policy, "seed": run.seed}
    if run.fragment_ratio is None:
        yield {**own, "measure": "fragment_ratio", "reason": "nothing_idle"}
    for size in run.sizes:
        if not size.arrived:
            yield {**own, "measure": "wait_seconds", "size": size.size, "reason": "no_arrival_of_this_size"}


def _flat(runs: Sequence[ChurnRun]) -> Table:
    sizes = sorted({size.size for run in runs for size in run.sizes}, key=size_rank)
    keys = (
        *("trace", "workload", "policy", "seed", "times", "jobs_without_time", "jobs_left_out"),
        *("span_seconds", "warm_up_seconds", *_COUNTS, *_MEASURES),
        *(f"{key}_{size}" for size in sizes for key in _SIZE_KEYS),
        "seconds",
    )
    rows = tuple(_flat_row(run, keys) for run in runs)
    return Table(title="", columns=tuple(Column(key, key) for key in keys), rows=rows)


def _flat_row(run: ChurnRun, keys: Iterable[str]) -> Row:
    by_size = {f"{key}_{size.size}": getattr(size, key) for size in run.sizes for key in _SIZE_KEYS}
    return {key: by_size[key] if key in by_size else getattr(run, key, None) for key in keys}
