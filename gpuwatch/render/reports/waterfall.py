"""The honest count as bars and as a table of pools and models."""

from __future__ import annotations

from gpuwatch.model.evaluation import Evaluation, Waterfall
from gpuwatch.model.units import MILLI, gpus
from gpuwatch.render.report import Bar, Chart, Column, Lines, Section, Table

_STEPS = (
    ("installed", "every device of every node"),
    ("healthy", "not reported broken"),
    ("schedulable", "on a node that takes work"),
    ("allocated", "held by a job"),
    ("active", "seen working"),
)

SCOPE_COLUMNS = (
    Column("scope", "Pool or model"),
    *(Column(step, step.capitalize(), "GPUs") for step, _ in _STEPS),
    Column("idle_held", "Idle held", "GPUs"),
    Column("activity_unknown", "Unknown", "GPUs"),
    Column("free", "Free", "GPUs"),
    Column("blocked", "Blocked", "GPUs"),
)


def waterfall_sections(evaluation: Evaluation, scopes: bool = True) -> tuple[Section, ...]:
    """Bars for the whole cluster; with `scopes` also the table per pool and per model."""
    if evaluation.waterfall is None:
        return (Lines(title="GPUs counted", lines=("The count is missing: its stage failed (see gpuwatch doctor).",)),)
    sections: list[Section] = [_chart(evaluation.waterfall)]
    if scopes and evaluation.waterfall_scopes:
        rows = tuple(waterfall_row(each) for each in evaluation.waterfall_scopes if not each.is_cell)
        sections.append(Table(title="By pool and by model", columns=SCOPE_COLUMNS, rows=rows))
    return tuple(sections)


def scope_name(pool: str | None, gpu_model: str | None) -> str:
    """ "pool a", "model H100-80", "pool a, model H100-80" or "whole cluster"."""
    parts = [f"{word} {name}" for word, name in (("pool", pool), ("model", gpu_model)) if name is not None]
    return ", ".join(parts) or "whole cluster"


def waterfall_row(counted: Waterfall) -> dict[str, str | int | float | bool | None]:
    """One scope as a row of SCOPE_COLUMNS, in GPUs."""
    names = (*(step for step, _ in _STEPS), "idle_held", "activity_unknown", "free")
    row: dict[str, str | int | float | bool | None] = {"scope": scope_name(counted.pool, counted.gpu_model)}
    row.update({name: getattr(counted, f"{name}_milligpu") / MILLI for name in names})
    row["blocked"] = sum(counted.blocked.values()) / MILLI
    return row


def _chart(counted: Waterfall) -> Chart:
    bars: list[Bar] = []
    for step, note in _STEPS:
        bars.append(Bar(step, getattr(counted, f"{step}_milligpu") / MILLI, note))
        if step == "healthy" and counted.health_unknown_milligpu:
            unsure = f"{gpus(counted.health_unknown_milligpu)} of them only because nobody reports their health"
            bars[-1] = Bar(step, bars[-1].value, unsure)
        if step == "schedulable":
            bars += [
                Bar(f"  {cause.replace('_', ' ')}", amount / MILLI, "blocked: installed and not schedulable")
                for cause, amount in sorted(counted.blocked.items())
                if amount
            ]
    rest = (
        ("  idle held", counted.idle_held_milligpu, "held and proven to do no work"),
        ("  unknown", counted.activity_unknown_milligpu, "held, and nobody can say whether they work"),
        ("free", counted.free_milligpu, "schedulable and not held"),
    )
    bars += [Bar(label, amount / MILLI, note) for label, amount, note in rest]
    return Chart(title="GPUs counted", unit="GPUs", bars=tuple(bars), full=counted.installed_milligpu / MILLI)
