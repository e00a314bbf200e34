"""Placement policies compared on a replayed trace: allocation, fragmentation, who was admitted, and the curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gpuwatch.model.replay import ReplayRun
from gpuwatch.placement.replay_summary import (
    FRAGMENT_PERCENTS,
    MeanCurve,
    PolicySummary,
    admission_ratio,
    fragment_ratio,
    size_order,
)
from gpuwatch.render.plain import plain
from gpuwatch.render.report import Cell, Column, Curve, Lines, Plot, Report, Section, Table
from gpuwatch.render.reports.replay_parts import NAMES, over_seeds, size_title, spread_cells
from gpuwatch.render.text import number

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
            *_admission(summaries, sizes),
            *_flags(summaries),
            *_plots(curves),
        ),
        flat=_flat(runs, sizes),
    )


def _sentences(runs: Sequence[ReplayRun], trace: str) -> Iterable[str]:
    if not runs:
        return
    first = runs[0]
    yield (
        f"Jobs of {trace} arrive in random order until they ask for {number(100 * first.inflate_ratio)}% of the GPU"
        " capacity; none leaves, and one that fits nowhere is dropped."
    )
    over = over_seeds(run.seed for run in runs)
    yield f"{over[0].upper()}{over[1:]}; ± is the standard deviation of the sample."
    without = Counter(run.workload for run in runs if not run.arrivals)
    for workload, count in without.items():
        yield (
            f"{workload}: no job came in {count:,} of its runs. Jobs are left out at random until the rest asks for no"
            " more than that, and none was left."
        )


# -- tables -----------------------------------------------------------------------------------------------------------


def _capacity_columns() -> tuple[Column, ...]:
    return (
        *NAMES,
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


def _admission(summaries: Iterable[PolicySummary], sizes: Sequence[str]) -> Iterable[Table]:
    if sizes:
        yield Table(
            title="Admitted by job size, while up to 100% arrived",
            columns=_size_columns(sizes),
            rows=_size_rows(summaries),
        )


def _size_columns(sizes: Iterable[str]) -> tuple[Column, ...]:
    return (
        *NAMES,
        *(column for size in sizes for column in _measure(f"size_{size}", size_title(size), 1, wide_deviation=True)),
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
            **spread_cells("allocation_100", each.allocation_ratio_at_100, 100),
            **spread_cells("allocation_130", each.allocation_ratio_at_130, 100),
            **{
                key: cell
                for point in each.fragment
                for key, cell in spread_cells(f"fragment_{point.arrived_percent}", point.ratio, 100).items()
            },
            **spread_cells("seconds", each.seconds, 1),
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
                for key, cell in spread_cells(f"size_{admitted.size}", admitted.ratio, 100).items()
            },
        }
        for each in summaries
    )


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
