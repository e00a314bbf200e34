"""A MIG plan: what of the demand is met, what becomes of each GPU, and the lines to run with their undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpuwatch.model.evaluation import Command, Evaluation
from gpuwatch.model.mig import AskAnswer, DeviceLayout, MigPlan, MigSpot
from gpuwatch.render.places import places, ranges
from gpuwatch.render.plain import plain, time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Section, Table

_DEMAND_COLUMNS = (
    Column("profile", "Profile"),
    Column("count", "Asked", "count"),
    Column("ready", "Ready", "count"),
    Column("created", "Created", "count"),
    Column("unmet", "Unmet", "count"),
    Column("reason", "Why", flex=True),
    Column("pool", "Pool", wide=True),
    Column("jobs", "Jobs", wide=True),
)
_LAYOUT_COLUMNS = (
    Column("gpus", "GPUs", "count"),
    Column("where", "Where", flex=True),
    Column("model", "Model"),
    Column("delete", "Delete"),
    Column("create", "Create"),
    Column("keep", "Keep"),
    Column("later", "Largest profile left"),
    Column("drain", "Drain first", wide=True),
)
_FLAT_KEYS = (
    *("node", "pool", "gpu_index", "gpu_uuid", "gpu_model", "action", "profile", "placement_start", "memory_slices"),
    *("instance_id", "held_by"),
)


def mig_plan_report(plan: MigPlan, steps: Sequence[Command], evaluation: Evaluation | None) -> Report:
    """What `gpuwatch mig plan` prints; `evaluation` is None for a plan on empty GPUs."""
    cluster = evaluation.cluster if evaluation else None
    sections: list[Section] = [
        Lines(title="MIG plan", lines=tuple(_sentences(plan))),
        Table(title="Demand", columns=_DEMAND_COLUMNS, rows=tuple(map(_demand_row, plan.answers)), empty="none"),
    ]
    changed = [each for each in plan.devices if each.create or each.delete]
    if changed:
        rows = tuple(_layout_row(alike) for alike in _alike(changed))
        sections.append(Table(title="Layouts", columns=_LAYOUT_COLUMNS, rows=rows))
    if steps:
        sections.append(Lines(title="Steps, in this order; undo in reverse", lines=tuple(_lines(steps)), code=True))
    return Report(
        title=f"MIG plan for {cluster or 'empty GPUs'}",
        document=_document(plan, steps, evaluation),
        sections=tuple(sections),
        flat=Table(
            title="",
            columns=tuple(Column(key, key) for key in _FLAT_KEYS),
            rows=tuple(row for each in plan.devices for row in _flat_rows(each)),
        ),
        notes=(f"instances without a place: {plan.unmet}",) if plan.unmet else (),
    )


def _sentences(plan: MigPlan) -> Iterator[str]:
    if not plan.answers:
        yield "Nothing is asked for."
        return
    asked = sum(answer.ask.count for answer in plan.answers)
    yield (
        f"Instances that have a place: {asked - plan.unmet} of {asked}, of which {_ready(plan)} stand free already. "
        f"GPUs to repartition: {plan.repartitioned} of {plan.considered}."
    )
    yield f"Wholly free GPUs: {plan.free_gpus_before} now, {plan.free_gpus_before - plan.free_gpus_lost} afterward."
    yield _proof(plan)
    if plan.left_out:
        told = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in plan.left_out.items())
        yield f"Not considered: {told}."
    if plan.training_kept_off:
        yield f"Training is kept off MIG; waiting training jobs that get nothing here: {len(plan.training_kept_off)}."


def _ready(plan: MigPlan) -> int:
    return sum(answer.ready for answer in plan.answers)


def _proof(plan: MigPlan) -> str:
    if plan.method == "exact":
        return "No plan does better: it was found by exact optimization."
    if plan.most_met_slices is None:
        return "Found by a fast rule; how far it is from the best plan is not known here."
    fewest = (
        ""
        if plan.fewest_free_gpus_lost is None
        else f", none that meets this loses fewer than {plan.fewest_free_gpus_lost} free GPUs"
    )
    return (
        f"Found by a fast rule: it meets {plan.met_slices} compute slices, no plan more than "
        f"{plan.most_met_slices}{fewest}."
    )


def _demand_row(answer: AskAnswer) -> dict[str, Cell]:
    blocked = f": {'; '.join(answer.blocked_by)}" if answer.blocked_by else ""
    return {
        "profile": answer.ask.profile,
        "count": answer.ask.count,
        "ready": answer.ready,
        "created": answer.created,
        "unmet": answer.unmet,
        "reason": f"{answer.reason}{blocked}" if answer.reason else "met",
        "pool": answer.ask.pool or "any",
        "jobs": ", ".join(answer.ask.jobs),
    }


def _alike(layouts: Iterable[DeviceLayout]) -> list[list[DeviceLayout]]:
    """Devices to which the very same happens, together."""
    groups: dict[tuple[Any, ...], list[DeviceLayout]] = {}
    for each in layouts:
        key = each.gpu_model, *map(_spots, (each.delete, each.create, each.keep)), each.enable_mig, each.drain
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _layout_row(alike: list[DeviceLayout]) -> dict[str, Cell]:
    first = alike[0]
    return {
        "gpus": len(alike),
        "where": _where(alike) + (" (enable MIG)" if first.enable_mig else ""),
        "model": first.gpu_model,
        "delete": _spots(first.delete) or "nothing",
        "create": _spots(first.create) or "nothing",
        "keep": _spots(first.keep) or "nothing",
        "later": f"{first.largest_before or 'none'} -> {first.largest_after or 'none'}",
        "drain": ", ".join(first.drain),
    }


def _where(layouts: Iterable[DeviceLayout]) -> str:
    nodes: dict[str, list[int]] = {}
    for each in layouts:
        nodes.setdefault(each.node, []).append(each.gpu_index)
    return places((node, f"GPU {ranges(indexes)}") for node, indexes in nodes.items())


def _spots(spots: Iterable[MigSpot]) -> str:
    """ "3g.40gb:4, 1g.10gb:0" as the driver's own command writes placements; without a start where nobody tells it."""
    order = sorted(spots, key=lambda spot: (-1 if spot.start is None else spot.start, spot.profile))
    return ", ".join(spot.profile if spot.start is None else f"{spot.profile}:{spot.start}" for spot in order)


def _lines(steps: Sequence[Command]) -> Iterator[str]:
    for number, step in enumerate(steps, start=1):
        yield f"# {number}. {step.note}" if step.note else f"# {number}."
        yield step.run
        yield f"# undo: {step.undo}"


def _document(plan: MigPlan, steps: Sequence[Command], evaluation: Evaluation | None) -> dict[str, Any]:
    fields = plain(plan)
    devices = fields.pop("devices")
    return {
        "schema": "gpuwatch.mig_plan/1",
        "evaluation_id": evaluation.id if evaluation else None,
        "cluster": evaluation.cluster if evaluation else None,
        "snapshot_taken_at": time_text(evaluation.snapshot_taken_at) if evaluation else None,
        **fields,
        "steps": plain(list(steps)),
        "items": devices,
        "skipped": [{"subject": job, "reason": "training"} for job in plan.training_kept_off],
    }


def _flat_rows(layout: DeviceLayout) -> Iterator[dict[str, Cell]]:
    actions = (("delete", layout.delete), ("create", layout.create), ("keep", layout.keep))
    for action, spots in actions:
        for spot in spots:
            yield {
                "node": layout.node,
                "pool": layout.pool,
                "gpu_index": layout.gpu_index,
                "gpu_uuid": layout.uuid,
                "gpu_model": layout.gpu_model,
                "action": action,
                "profile": spot.profile,
                "placement_start": spot.start,
                "memory_slices": spot.memory_slices,
                "instance_id": spot.id,
                "held_by": " ".join(spot.held_by),
            }
