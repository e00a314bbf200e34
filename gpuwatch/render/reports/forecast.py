"""Demand to come, one line per target with its interval; the flat table has one row per step."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.model.evaluation import Evaluation, Forecast
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.render.documents import forecasts_document
from gpuwatch.render.plain import time_text
from gpuwatch.render.report import Cell, Column, Report, Table

_LEVELS = ("0.8", "0.95")
_COLUMNS = (
    Column("pool", "Pool"),
    Column("kind", "Kind"),
    Column("status", "Status"),
    Column("next", "Next step", "GPUs", digits=1),
    Column("peak", "Peak", "GPUs", digits=1),
    Column("peak_80", "Peak, 80% interval", "GPUs"),
    Column("peak_at", "Peak at", "UTC"),
    Column("model", "Model"),
    Column("skill", "Skill vs daily repeat", "-inf to 1", digits=2),
    Column("coverage_80", "80% held", "ratio", digits=2, wide=True),
    Column("coverage_95", "95% held", "ratio", digits=2, wide=True),
    Column("history", "History", "steps", wide=True),
    Column("reason", "Note", flex=True),
)
_FLAT_KEYS = (
    *("pool", "kind", "quantity", "status", "model", "skill_vs_seasonal_naive", "at", "mean_gpus"),
    *(f"{side}_{level}_gpus" for level in _LEVELS for side in ("low", "high")),
    "reason",
)


def forecast_report(evaluation: Evaluation, chosen: Sequence[Forecast] | None = None) -> Report:
    """What `gpuwatch forecast` prints."""
    forecasts = evaluation.forecasts if chosen is None else tuple(chosen)
    notes = () if forecasts else ("no demand target has a history yet",)
    return Report(
        title=f"Demand forecast for {evaluation.cluster}",
        document=forecasts_document(evaluation, forecasts),
        sections=(forecast_table(forecasts),),
        flat=Table(
            title="",
            columns=tuple(Column(key, key) for key in _FLAT_KEYS),
            rows=tuple(row for each in forecasts for row in _flat_rows(each)),
        ),
        notes=notes,
    )


def forecast_table(forecasts: Sequence[Forecast], title: str = "Demand forecast") -> Table:
    """One row per target: the next step, and the highest one within the horizon."""
    return Table(title=title, columns=_COLUMNS, rows=tuple(_row(each) for each in forecasts), empty="no target")


def _row(each: Forecast) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "pool": "(no pool)" if each.pool == ALL_POOLS else each.pool,
        "kind": each.kind,
        "status": each.status.replace("_", " "),
        "model": each.model,
        "skill": each.skill_vs_seasonal_naive,
        "coverage_80": each.coverage_ratio.get("0.8"),
        "coverage_95": each.coverage_ratio.get("0.95"),
        "history": each.history_steps,
        "reason": each.reason or each.model_reason,
    }
    if each.steps:
        peak = max(each.steps, key=lambda step: step.mean_gpus)
        low_high = peak.intervals.get("0.8")
        row |= {"next": each.steps[0].mean_gpus, "peak": peak.mean_gpus, "peak_at": time_text(peak.at)[:16]}
        row["peak_80"] = f"{low_high[0]:,.1f} to {low_high[1]:,.1f}" if low_high else None
    return row


def _flat_rows(each: Forecast) -> list[dict[str, Cell]]:
    head: dict[str, Cell] = {
        "pool": each.pool,
        "kind": each.kind,
        "quantity": each.quantity,
        "status": each.status,
        "model": each.model,
        "skill_vs_seasonal_naive": each.skill_vs_seasonal_naive,
        "reason": each.reason,
    }
    if not each.steps:
        return [head]
    rows = []
    for step in each.steps:
        row = {**head, "at": time_text(step.at), "mean_gpus": step.mean_gpus}
        for level in _LEVELS:
            if level in step.intervals:
                row[f"low_{level}_gpus"], row[f"high_{level}_gpus"] = step.intervals[level]
        rows.append(row)
    return rows
