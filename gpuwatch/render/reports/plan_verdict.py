"""What became of a rebalance plan: each step still stands, is done, or is refused with the reason."""

from __future__ import annotations

from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.plan import PlanVerdict
from gpuwatch.render.plain import plain, time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Table

_COLUMNS = (
    Column("order", "#"),
    Column("kind", "Step"),
    Column("job", "Job", flex=True),
    Column("verdict", "Verdict"),
    Column("reason", "Why"),
    Column("detail", "In words", flex=True),
)


def verdict_report(verdict: PlanVerdict, evaluation: Evaluation) -> Report:
    """What `gpuwatch plan verify` prints."""
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "order": each.order,
            "kind": each.kind,
            "job": each.job,
            "verdict": each.verdict,
            "reason": each.reason,
            "detail": each.detail,
        }
        for each in verdict.steps
    )
    fields = plain(verdict)
    items = fields.pop("steps")
    document = {
        "schema": "gpuwatch.plan_verdict/1",
        "evaluation_id": fields.pop("evaluation_id"),
        "cluster": fields.pop("cluster"),
        "snapshot_taken_at": time_text(evaluation.snapshot_taken_at),
        **fields,
        "items": items,
        "skipped": [],
    }
    return Report(
        title=f"Plan {verdict.plan_evaluation_id} in {verdict.cluster}",
        document=document,
        sections=(
            Lines(title="Verdict", lines=tuple(_sentences(verdict))),
            Table(title="Steps", columns=_COLUMNS, rows=rows, empty="the plan has no steps"),
        ),
        flat=Table(title="", columns=tuple(Column(each.key, each.key) for each in _COLUMNS), rows=rows),
    )


def _sentences(verdict: PlanVerdict) -> list[str]:
    if verdict.valid:
        out = [f"The plan stands: {verdict.steps_to_do} of {len(verdict.steps)} steps are still to do."]
    else:
        refused = sum(each.verdict == "refused" for each in verdict.steps)
        out = [
            f"The plan no longer stands: {refused} of {len(verdict.steps)} steps are refused.",
            f"Its first {verdict.sound_steps} steps stand; make a new plan for the rest."
            if verdict.sound_steps
            else "None of it can be done as planned; make a new plan.",
        ]
    if verdict.changed_nodes:
        out.append(f"Nodes that it touches and that have changed since: {', '.join(verdict.changed_nodes)}.")
    return out
