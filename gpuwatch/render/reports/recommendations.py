"""Ranked advice with its price, and the commands behind each line when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gpuwatch.model.evaluation import Evaluation, Recommendation, Waterfall
from gpuwatch.model.units import gpus
from gpuwatch.render.documents import recommendations_document
from gpuwatch.render.plain import time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Section, Table
from gpuwatch.render.select import grouped

_FLAT_KEYS = (
    *("rank", "id", "rule", "severity", "confidence_ratio", "subject_kind", "subject", "node", "pool", "gpu_model"),
    *("tenant", "recoverable_gpus", "recoverable_gpu_hours_per_week", "cost_per_week", "currency", "kwh_per_week"),
    *("work_lost_seconds", "disruption", "summary", "unlocks", "first_seen_at", "valid_until"),
)


def recommendations_report(
    evaluation: Evaluation,
    chosen: Sequence[Recommendation],
    *,
    group_by: str | None = None,
    group_over: Sequence[Recommendation] | None = None,
    show_commands: bool = False,
) -> Report:
    """What `gpuwatch recommend` prints, for an already filtered and sorted selection.

    group_over: what the groups add up, when `chosen` is only the first few of it.
    """
    document = recommendations_document(evaluation, chosen)
    sections: list[Section] = [recommendations_table(chosen, currency_of(chosen))]
    flat = Table(
        title="",
        columns=tuple(Column(key, key) for key in _FLAT_KEYS),
        rows=tuple(_flat_row(rank, item) for rank, item in enumerate(chosen, start=1)),
    )
    if group_by:
        members = chosen if group_over is None else group_over
        document["group_by"] = group_by
        document["groups"] = [asdict(group) for group in grouped(members, group_by)]
        sections.insert(0, group_table(group_by, members))
    if show_commands:
        sections += [_commands(rank, item) for rank, item in enumerate(chosen, start=1)]
    unjudged = len(evaluation.abstentions)
    notes = [] if chosen else ["no recommendation matches"]
    if evaluation.waterfall is not None:
        sections.insert(0, Lines(title="", lines=(counted_line(evaluation.waterfall),)))
    if unjudged:
        notes.append(f"{unjudged} subjects were looked at and not judged; -o json lists them under skipped")
    return Report(
        title=f"Recommendations for {evaluation.cluster}",
        document=document,
        sections=tuple(sections),
        flat=flat,
        notes=tuple(notes),
    )


def counted_line(counted: Waterfall) -> str:
    """The count that the advice stands on, in one sentence."""
    return (
        f"Of {gpus(counted.installed_milligpu)} installed GPUs {gpus(counted.allocated_milligpu)} are allocated "
        f"({gpus(counted.idle_held_milligpu)} of them idle-held, {gpus(counted.activity_unknown_milligpu)} of unknown "
        f"activity) and {gpus(counted.free_milligpu)} are free."
    )


def recommendations_table(
    chosen: Sequence[Recommendation], currency: str | None, title: str = "Recommendations"
) -> Table:
    """One row per recommendation, ranked as given."""
    columns = (
        Column("rank", "#"),
        Column("severity", "Severity", severity=True),
        Column("rule", "Rule"),
        Column("subject", "Subject"),
        Column("gpus", "Back", "GPUs"),
        Column("gpu_hours", "Back", "GPU-h/week", digits=0),
        Column("cost", "Worth", f"{currency or 'price'}/week", digits=0),
        Column("confidence", "Sure", "0-1", digits=2),
        Column("summary", "Advice", flex=True),
        Column("tenant", "Tenant", wide=True),
        Column("node", "Node", wide=True),
        Column("pool", "Pool", wide=True),
        Column("gpu_model", "Model", wide=True),
        Column("kwh", "Energy", "kWh/week", digits=0, wide=True),
        Column("lost", "Work lost", "s", wide=True),
        Column("disruption", "Disruption", wide=True),
        Column("unlocks", "Unlocks", "jobs", wide=True),
        Column("id", "Id", wide=True),
    )
    rows = tuple(_row(rank, item) for rank, item in enumerate(chosen, start=1))
    return Table(title=title, columns=columns, rows=rows, empty="none")


def group_table(key: str, chosen: Sequence[Recommendation]) -> Table:
    """Sums per group of a select.GROUP_KEYS id."""
    rows = tuple(asdict(group) for group in grouped(chosen, key))
    columns = (
        Column("name", key.replace("-", " ").capitalize()),
        Column("recommendations", "Advice", "count"),
        Column("worst_severity", "Worst", severity=True),
        Column("gpus", "Back", "GPUs"),
        Column("gpu_hours_per_week", "Back", "GPU-h/week", digits=0),
        Column("cost_per_week", "Worth", f"{currency_of(chosen) or 'price'}/week", digits=0),
    )
    return Table(title=f"By {key}", columns=columns, rows=rows, empty="none")


def currency_of(items: Sequence[Recommendation]) -> str | None:
    """The currency of the prices; None when nothing is priced."""
    return next((item.recoverable.currency for item in items if item.recoverable.currency), None)


def _row(rank: int, item: Recommendation) -> dict[str, Cell]:
    return {
        "rank": rank,
        "severity": item.severity,
        "rule": item.rule,
        "subject": item.subject.name,
        "gpus": item.recoverable.gpus,
        "gpu_hours": item.recoverable.gpu_hours_per_week,
        "cost": item.recoverable.cost,
        "confidence": item.confidence.value,
        "summary": item.summary,
        "tenant": item.subject.tenant,
        "node": item.subject.node,
        "pool": item.subject.pool,
        "gpu_model": item.subject.gpu_model,
        "kwh": item.recoverable.kwh,
        "lost": item.risk.work_lost_seconds,
        "disruption": item.risk.disruption,
        "unlocks": len(item.unlocks),
        "id": item.id,
    }


def _flat_row(rank: int, item: Recommendation) -> dict[str, Cell]:
    return {
        "rank": rank,
        "id": item.id,
        "rule": item.rule,
        "severity": item.severity,
        "confidence_ratio": item.confidence.value,
        "subject_kind": item.subject.kind,
        "subject": item.subject.name,
        "node": item.subject.node,
        "pool": item.subject.pool,
        "gpu_model": item.subject.gpu_model,
        "tenant": item.subject.tenant,
        "recoverable_gpus": item.recoverable.gpus,
        "recoverable_gpu_hours_per_week": item.recoverable.gpu_hours_per_week,
        "cost_per_week": item.recoverable.cost,
        "currency": item.recoverable.currency,
        "kwh_per_week": item.recoverable.kwh,
        "work_lost_seconds": item.risk.work_lost_seconds,
        "disruption": item.risk.disruption,
        "summary": item.summary,
        "unlocks": " ".join(item.unlocks),
        "first_seen_at": time_text(item.first_seen_at) if item.first_seen_at else None,
        "valid_until": time_text(item.valid_until) if item.valid_until else None,
    }


def _commands(rank: int, item: Recommendation) -> Lines:
    lines: list[str] = []
    for command in item.commands:
        lines.append(command.run)
        if command.undo:
            lines.append(f"# undo: {command.undo}")
        if command.note:
            lines.append(f"# {command.note}")
    if not lines:
        lines.append("# no command: this one needs a person's decision")
    return Lines(title=f"{rank}. {item.summary}", lines=tuple(lines), code=True)
