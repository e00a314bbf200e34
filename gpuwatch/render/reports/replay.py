"""Placement policies compared on a replayed trace: allocation, fragmentation, who was admitted, and the curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpuwatch.model.replay import CPU_ONLY, SHARE, ReplayRun
from gpuwatch.placement.replay_summary import (
    FRAGMENT_PERCENTS,
    MeanCurve,
    PolicySummary,
    Spread,
    admission_ratio,
    fragment_ratio,
    size_order,
)
from gpuwatch.render.plain import plain
from gpuwatch.render.report import Cell, Column, Curve, Lines, Plot, Report, Section, Table
from gpuwatch.render.text import number

_NAMES = (Column("workload", "Workload"), Column("policy", "Policy"))
_SIZE_TITLES = {CPU_ONLY: "CPU only", SHARE: "share"}
_DRAWN_FROM_PERCENT = 70  # before that, every policy has room for what comes
_ARRIVED = "arrived demand, % of the capacity"


def replay_report(runs: Sequence[ReplayRun], summaries: Sequence[PolicySummary], curves: Sequence[MeanCurve]) -> Report:
    """What `gpuwatch replay` prints of the arrival protocol."""
    sizes = sorted({each.size for run in runs for each in run.admission}, key=size_order)
    trace = ", ".join(sorted({run.trace for run in runs})) or "nothing"
    return Report(
        title=f"Replay of {trace}",
        document=_document(runs, summaries),
        sections=(
            Lines(title="", lines=tuple(_sentences(runs, trace))),
            Table(title="Allocation and fragmentation", columns=_capacity_columns(), rows=_capacity_rows(summaries)),
            Table(title="Admitted by job size", columns=_size_columns(sizes), rows=_size_rows(summaries)),
            *_flags(summaries),
            *_plots(curves),
        ),
        flat=_flat(runs, sizes),
    )


def _sentences(runs: Sequence[ReplayRun], trace: str) -> Iterable[str]:
    if not runs:
        return
    first = runs[0]
    seeds = {run.seed for run in runs}
    yield (
        f"Jobs of {trace} arrive in random order until they ask for {number(100 * first.inflate_ratio)}% of the GPU"
        " capacity; none leaves, and one that fits nowhere is dropped."
    )
    yield f"Means over {len(seeds)} seeds ({min(seeds)} to {max(seeds)}); ± is the standard deviation of the sample."


# -- tables -----------------------------------------------------------------------------------------------------------


def _capacity_columns() -> tuple[Column, ...]:
    return (
        *_NAMES,
        Column("runs", "Runs"),
        *_measure("allocation_100", "Allocated at 100", 2),
        *_measure("allocation_130", "at 130", 2),
        *(
            column
            for at, percent in enumerate(FRAGMENT_PERCENTS)
            for column in _measure(
                f"fragment_{percent}", f"{'' if at else 'Fragment of idle '}at {percent}", 1, wide_deviation=True
            )
        ),
        *_measure("seconds", "Time", 2, unit="s", wide_deviation=True),
    )


def _size_columns(sizes: Iterable[str]) -> tuple[Column, ...]:
    titles = {size: _SIZE_TITLES.get(size, f"{size} GPU" + ("s" if size != "1" else "")) for size in sizes}
    return (
        *_NAMES,
        *(column for size in titles for column in _measure(f"size_{size}", titles[size], 1, wide_deviation=True)),
    )


def _measure(
    key: str, title: str, digits: int, *, unit: str = "%", wide_deviation: bool = False
) -> tuple[Column, Column]:
    deviation = Column(f"{key}_deviation", "±", unit, digits=digits, wide=wide_deviation)
    return Column(key, title, unit, digits=digits), deviation


def _capacity_rows(summaries: Iterable[PolicySummary]) -> tuple[dict[str, Cell], ...]:
    return tuple(
        {
            "workload": each.workload,
            "policy": each.policy,
            "runs": each.runs,
            **_cells("allocation_100", each.allocation_ratio_at_100),
            **_cells("allocation_130", each.allocation_ratio_at_130),
            **{
                key: cell
                for point in each.fragment
                for key, cell in _cells(f"fragment_{point.arrived_percent}", point.ratio).items()
            },
            **_cells("seconds", each.seconds, factor=1),
        }
        for each in summaries
    )


def _size_rows(summaries: Iterable[PolicySummary]) -> tuple[dict[str, Cell], ...]:
    return tuple(
        {
            "workload": each.workload,
            "policy": each.policy,
            **{
                key: cell
                for admitted in each.admission
                for key, cell in _cells(f"size_{admitted.size}", admitted.ratio).items()
            },
        }
        for each in summaries
    )


def _cells(key: str, measured: Spread | None, factor: float = 100) -> dict[str, Cell]:
    if measured is None:
        return {}
    deviation = measured.deviation
    return {key: factor * measured.mean, f"{key}_deviation": None if deviation is None else factor * deviation}


def _flags(summaries: Iterable[PolicySummary]) -> Iterable[Section]:
    told = [
        f"{each.workload}: {each.policy} allocates more than {each.starved.best_policy}, and admits"
        f" {number(100 * each.starved.behind_ratio, 1)} points fewer of the jobs of {each.starved.size} GPUs."
        for each in summaries
        if each.starved
    ]
    if told:
        yield Lines(title="Paid for by large jobs", lines=tuple(told))


# -- curves -----------------------------------------------------------------------------------------------------------


def _plots(curves: Sequence[MeanCurve]) -> Iterable[Plot]:
    for workload in dict.fromkeys(each.workload for each in curves):
        own = [each for each in curves if each.workload == workload]
        yield Plot(
            title=f"{workload}: allocated",
            x_title=_ARRIVED,
            y_unit="% of the capacity",
            curves=tuple(
                Curve(each.policy, tuple((at.arrived_percent, 100 * at.allocation_ratio) for at in each.points))
                for each in own
            ),
            draw_from=_DRAWN_FROM_PERCENT,
        )
        yield Plot(
            title=f"{workload}: fragment of what is idle",
            x_title=_ARRIVED,
            y_unit="%",
            curves=tuple(
                Curve(each.policy, tuple((at.arrived_percent, _percent(at.fragment_ratio)) for at in each.points))
                for each in own
            ),
        )


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


# -- for programs -----------------------------------------------------------------------------------------------------


def _document(runs: Sequence[ReplayRun], summaries: Sequence[PolicySummary]) -> dict[str, Any]:
    return {
        "schema": "gpuwatch.replay/1",
        "protocol": "arrivals",
        "summaries": plain(list(summaries)),
        "items": [_item(run) for run in runs],
        "skipped": [missing for run in runs for missing in _missing(run)],
    }


def _item(run: ReplayRun) -> dict[str, Any]:
    fields: dict[str, Any] = plain(run)
    curve, admission, seconds = fields.pop("curve"), fields.pop("admission"), fields.pop("seconds")
    return {**fields, "admission": admission, "fragmentation_curve": curve, "seconds": seconds}


def _missing(run: ReplayRun) -> Iterable[dict[str, Any]]:
    """Why a number that others have is null here."""
    points = {point.arrived_percent for point in run.curve}
    own = {"workload": run.workload, "policy": run.policy, "seed": run.seed}
    for percent, found in ((100, run.allocation_ratio_at_100), (130, run.allocation_ratio_at_130)):
        if found is None:
            yield {**own, "measure": f"allocation_ratio_at_{percent}", "reason": "no_arrival_at_this_point"}
    for percent in FRAGMENT_PERCENTS:
        if fragment_ratio(run, percent) is None:
            reason = "nothing_idle" if percent in points else "no_arrival_at_this_point"
            yield {**own, "measure": f"fragment_ratio_at_{percent}", "reason": reason}


def _flat(runs: Sequence[ReplayRun], sizes: Sequence[str]) -> Table:
    keys = (
        *("trace", "workload", "policy", "seed", "inflate_ratio", "arrivals"),
        *("allocation_ratio_at_100", "allocation_ratio_at_130"),
        *(f"fragment_ratio_at_{percent}" for percent in FRAGMENT_PERCENTS),
        *(f"admission_ratio_{size}" for size in sizes),
        "seconds",
    )
    rows = tuple(_flat_row(run, sizes) for run in runs)
    return Table(title="", columns=tuple(Column(key, key) for key in keys), rows=rows)


def _flat_row(run: ReplayRun, sizes: Sequence[str]) -> dict[str, Cell]:
    return {
        "trace": run.trace,
        "workload": run.workload,
        "policy": run.policy,
        "seed": run.seed,
        "inflate_ratio": run.inflate_ratio,
        "arrivals": run.arrivals,
        "allocation_ratio_at_100": run.allocation_ratio_at_100,
        "allocation_ratio_at_130": run.allocation_ratio_at_130,
        **{f"fragment_ratio_at_{percent}": fragment_ratio(run, percent) for percent in FRAGMENT_PERCENTS},
        **{f"admission_ratio_{size}": admission_ratio(run, size) for size in sizes},
        "seconds": run.seconds,
    }
