"""A rebalance plan: steps, price, gain after each, and why the rest is left alone."""

from __future__ import annotations

from typing import Any

from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.plan import PLAN_SCHEMA, PlanStep, RebalancePlan
from gpuwatch.model.units import MILLI, gpus
from gpuwatch.render.plain import plain, time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Row, Section, Table

_STEP_COLUMNS = (
    Column("order", "#"),
    Column("kind", "Step"),
    Column("job", "Job", flex=True),
    Column("shape", "Shape"),
    Column("source", "From"),
    Column("target", "To"),
    Column("model", "Model", wide=True),
    Column("hours", "Work lost", "GPU-h", digits=2),
    Column("basis", "Counted as", wide=True),
    Column("started", "Started so far", "GPUs", digits=2),
    Column("stranded", "Stranded so far", "GPUs", digits=2),
    Column("undo", "Undo", wide=True, flex=True),
)
_REFUSED_COLUMNS = (
    Column("reason", "Left alone because"),
    Column("jobs", "Jobs", "count"),
    Column("example", "Such as"),
)
_SHAPE_COLUMNS = (Column("shape", "Shape"), Column("before", "Fits now"), Column("after", "Fits after"))
_FLAT_KEYS = (
    *("order", "kind", "job", "tenant", "owner", "shape", "gpu_model", "source", "source_gpus", "target"),
    *("target_gpus", "step_gpu_hours_lost", "work_lost_seconds", "started_milligpu", "usable_milligpu"),
    *("stranded_milligpu", "gpu_hours_lost", "undo"),
)
_NOTHING = {
    "no_gpus": "there is no GPU in this cluster",
    "no_demand": "nothing waits, and nobody knows which shapes are asked for",
    "nothing_free": "no GPU is free",
    "no_moves_allowed": "no move is allowed, and nothing that waits can start as it is",
    "nothing_movable": "no running job may be moved (see what is left alone)",
    "no_move_gains_enough": "no move that is allowed gains enough to be worth it",
}
_METHODS = {
    "exact": "No plan does better under these limits: it was found by exact optimization.",
    "previous": "The previous plan still stands and is not clearly worse, so it is kept.",
}


def plan_report(plan: RebalancePlan, evaluation: Evaluation, show_commands: bool = False) -> Report:
    """What `gpuwatch rebalance` prints. Its JSON is what `gpuwatch plan verify` reads."""
    sections: list[Section] = [Lines(title="Rebalance plan", lines=tuple(_sentences(plan)))]
    if plan.steps:
        rows = tuple(map(_step_row, plan.steps))
        sections.append(Table(title="Steps, in this order; undo in reverse", columns=_STEP_COLUMNS, rows=rows))
    if plan.shapes:
        shapes: tuple[Row, ...] = tuple(
            {"shape": s.shape, "before": s.fits_before, "after": s.fits_after} for s in plan.shapes
        )
        sections.append(Table(title="What fits", columns=_SHAPE_COLUMNS, rows=shapes))
    if plan.refused:
        refused: tuple[Row, ...] = tuple(
            {"reason": each.reason.replace("_", " "), "jobs": each.jobs, "example": each.example}
            for each in plan.refused
        )
        sections.append(Table(title="Left alone", columns=_REFUSED_COLUMNS, rows=refused))
    if show_commands and any(step.commands for step in plan.steps):
        sections.append(Lines(title="Commands", lines=tuple(_command_lines(plan)), code=True))
    return Report(
        title=f"Rebalance plan for {plan.cluster}",
        document=_document(plan, evaluation),
        sections=tuple(sections),
        flat=Table(
            title="", columns=tuple(Column(key, key) for key in _FLAT_KEYS), rows=tuple(map(_flat_row, plan.steps))
        ),
        notes=() if plan.steps else (f"nothing to do: {_NOTHING.get(plan.reason or '', plan.reason)}",),
    )


def _sentences(plan: RebalancePlan) -> list[str]:
    if not plan.steps:
        return [f"Nothing to do: {_NOTHING.get(plan.reason or '', plan.reason)}."]
    before, after = plan.before, plan.after
    out = [
        f"{plan.moves} moves (of {plan.allowed_moves} allowed, {plan.running_jobs} jobs run) and {plan.starts} starts: "
        f"{gpus(plan.started_milligpu)} GPUs go to jobs that wait.",
        f"Work lost by the moves: {plan.gpu_hours_lost:,.1f} GPU-hours.",
        f"Waiting: {before.pending_jobs} jobs for {gpus(before.pending_milligpu)} GPUs, then "
        f"{after.pending_jobs} for {gpus(after.pending_milligpu)}.",
        f"Free: {_free(before.free_milligpu, before.stranded_milligpu, before.fragmentation_index)}, then "
        f"{_free(after.free_milligpu, after.stranded_milligpu, after.fragmentation_index)}.",
    ]
    if plan.method in _METHODS:
        out.append(_METHODS[plan.method])
    elif plan.optimality_gap_ratio == 0:
        out.append("No plan does better under these limits: exact optimization found no better end state.")
    elif plan.optimality_gap_ratio is not None:
        out.append(
            f"It misses {100 * plan.optimality_gap_ratio:.1f}% of what the best end state is worth; "
            "that one may be out of reach by moves in order."
        )
    return out


def _free(free: int, stranded: float, index: float | None) -> str:
    told = "index unknown" if index is None else f"index {index:.1f}"
    return f"{gpus(free)} GPUs of which {gpus(stranded)} are stranded ({told})"


def _step_row(step: PlanStep) -> dict[str, Cell]:
    return {
        "order": step.order,
        "kind": step.kind,
        "job": step.job,
        "shape": step.shape,
        "source": _place(step.source, step.source_gpus) if step.source else "waits",
        "target": _place(step.target, step.target_gpus),
        "model": step.gpu_model,
        "hours": step.cost.gpu_hours if step.cost else None,
        "basis": step.cost.basis if step.cost else None,
        "started": step.started_milligpu / MILLI,
        "stranded": step.stranded_milligpu / MILLI,
        "undo": step.undo,
    }


def _place(node: str, indexes: tuple[int, ...]) -> str:
    return f"{node} GPU {','.join(map(str, indexes))}" if indexes else node


def _command_lines(plan: RebalancePlan) -> list[str]:
    out = []
    for step in plan.steps:
        if step.kind == "start":
            out.append(f"# step {step.order}: nothing to run; {step.job} is expected to start on {step.target} now")
        for each in step.commands:
            out += [f"# step {step.order}: {each.note}", each.run, f"# undo: {each.undo}"]
    return out


def _flat_row(step: PlanStep) -> dict[str, Cell]:
    return {
        "order": step.order,
        "kind": step.kind,
        "job": step.job,
        "tenant": step.tenant,
        "owner": step.owner,
        "shape": step.shape,
        "gpu_model": step.gpu_model,
        "source": step.source,
        "source_gpus": " ".join(map(str, step.source_gpus)),
        "target": step.target,
        "target_gpus": " ".join(map(str, step.target_gpus)),
        "step_gpu_hours_lost": step.cost.gpu_hours if step.cost else None,
        "work_lost_seconds": step.cost.work_lost_seconds if step.cost else None,
        "started_milligpu": step.started_milligpu,
        "usable_milligpu": step.usable_milligpu,
        "stranded_milligpu": step.stranded_milligpu,
        "gpu_hours_lost": step.gpu_hours_lost,
        "undo": step.undo,
    }


def _document(plan: RebalancePlan, evaluation: Evaluation) -> dict[str, Any]:
    fields = plain(plan)
    items, refused = fields.pop("steps"), fields.pop("refused")
    broken = [
        {"stage": each.stage, "reason": each.code, "detail": each.detail}
        for each in evaluation.failures
        if each.stage in ("booking", "mix")
    ]
    return {
        "schema": PLAN_SCHEMA,
        "evaluation_id": fields.pop("evaluation_id"),
        "cluster": fields.pop("cluster"),
        "snapshot_taken_at": time_text(evaluation.snapshot_taken_at),
        **fields,
        "items": items,
        "skipped": [*broken, *refused],
    }
