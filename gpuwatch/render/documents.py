"""The JSON documents that the command line and the API both print: plain dicts, raw numbers, units in the names.

Every document has schema, evaluation_id, cluster, snapshot_taken_at, items and skipped. `items` are the rows of a
list; a document that is one answer (fragmentation, placement) has its fields beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpuwatch.model.evaluation import (
    Abstention,
    Evaluation,
    Forecast,
    FragmentationScope,
    Recommendation,
    ShapeFit,
    Waterfall,
)
from gpuwatch.model.placement import PlacementAdvice
from gpuwatch.render.plain import plain, time_text

Document = dict[str, Any]

# Which broken stages leave a document incomplete.
_STAGES_BEHIND = {
    "waterfall": ("booking", "waterfall"),
    "fragmentation": ("booking", "mix", "fragmentation"),
    "forecasts": ("forecast",),
    "recommendations": ("booking", "mix", "demand", "advice"),
    "placement": ("booking", "mix"),
}


def fragmentation_document(evaluation: Evaluation) -> Document:
    """The index, its causes and the shapes that fit; fragmentation_index is null with a `reason` when unknown."""
    report = evaluation.fragmentation
    # Without a report nothing is known, and that is null, not a cluster with nothing free.
    unknown = dict.fromkeys(FragmentationScope.__dataclass_fields__) | {"by_cause": {}, "reason": "stage_failed"}
    overall = scope_fields(report.overall) if report else unknown
    scopes = [scope_fields(scope) for scope in report.scopes] if report else []
    return _envelope(
        "fragmentation",
        evaluation,
        items=[overall, *scopes] if report else [],
        **overall,
        mix_basis=report.mix_basis if report else None,
        mix_coverage_ratio=report.mix_coverage_ratio if report else None,
        excluded_mig_gpus=report.excluded_mig_gpus if report else None,
        shapes=[_shape(fit) for fit in report.shapes] if report else [],
        scopes=scopes,
        waterfall=_waterfall(evaluation.waterfall) if evaluation.waterfall else None,
    )


def waterfall_document(evaluation: Evaluation) -> Document:
    """The honest count: the whole cluster first, then each pool and each GPU model."""
    counted = [evaluation.waterfall, *evaluation.waterfall_scopes] if evaluation.waterfall else []
    return _envelope("waterfall", evaluation, items=[_waterfall(each) for each in counted if each])


def forecasts_document(evaluation: Evaluation, forecasts: Iterable[Forecast] | None = None) -> Document:
    """One item per target; pass `forecasts` to print a selection."""
    chosen = evaluation.forecasts if forecasts is None else forecasts
    return _envelope("forecasts", evaluation, items=[_forecast(each) for each in chosen])


def recommendations_document(
    evaluation: Evaluation,
    recommendations: Sequence[Recommendation] | None = None,
    abstentions: Sequence[Abstention] | None = None,
) -> Document:
    """Ranked advice; pass a selection to print fewer. `skipped` names what no rule would judge."""
    chosen = evaluation.recommendations if recommendations is None else recommendations
    unjudged = evaluation.abstentions if abstentions is None else abstentions
    return _envelope(
        "recommendations",
        evaluation,
        items=plain(list(chosen)),
        skipped=plain(list(unjudged)),
        waterfall=_waterfall(evaluation.waterfall) if evaluation.waterfall else None,
    )


def placement_document(advice: PlacementAdvice, evaluation: Evaluation) -> Document:
    """The answer to a what-if; its choices are the items."""
    fields = plain(advice)
    del fields["evaluation_id"]
    document = _envelope("placement", evaluation, items=fields["choices"], **fields)
    document["evaluation_id"] = advice.evaluation_id
    return document


def scope_fields(scope: FragmentationScope) -> Document:
    """One scope of the fragmentation report, every field."""
    fields: Document = plain(scope)
    return fields


def _envelope(
    name: str, evaluation: Evaluation, *, items: list[Any], skipped: Iterable[Any] = (), **fields: Any
) -> Document:
    broken = [
        {"stage": each.stage, "reason": each.code, "detail": each.detail}
        for each in evaluation.failures
        if each.stage in _STAGES_BEHIND[name]
    ]
    return {
        "schema": f"gpuwatch.{name}/1",
        "evaluation_id": evaluation.id,
        "cluster": evaluation.cluster,
        "snapshot_taken_at": time_text(evaluation.snapshot_taken_at),
        **fields,
        "items": items,
        "skipped": [*broken, *skipped],
    }


def _shape(fit: ShapeFit) -> Document:
    return {
        "shape": fit.shape.label,
        "share_ratio": fit.share_ratio,
        "fits_now": fit.fits_now,
        "stranded_milligpu": fit.stranded_milligpu,
        "request": plain(fit.shape),
    }


# The five words of the waterfall, without unit suffix, are part of the public fragmentation document.
_WATERFALL_GPUS = (
    "installed",
    "healthy",
    "schedulable",
    "allocated",
    "active",
    "idle_held",
    "activity_unknown",
    "free",
)


def _waterfall(counted: Waterfall) -> Document:
    fields: Document = plain(counted)
    in_gpus = {name: fields[f"{name}_milligpu"] / 1000 for name in _WATERFALL_GPUS}
    return {"pool": fields.pop("pool"), "gpu_model": fields.pop("gpu_model"), **in_gpus, **fields}


def _forecast(each: Forecast) -> Document:
    fields: Document = plain(each)
    target = {
        "pool": fields.pop("pool"),
        "kind": fields.pop("kind"),
        "tenant": None,  # forecasts add tenants and models up within a pool
        "gpu_model": None,
        "quantity": fields.pop("quantity"),
    }
    return {"target": target, **fields}
