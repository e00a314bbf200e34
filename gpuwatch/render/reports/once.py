"""Everything about one evaluation on one page: what `gpuwatch demo --once` prints."""

from __future__ import annotations

from typing import Any

from gpuwatch.model.evaluation import Evaluation, Forecast
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.render.documents import (
    forecasts_document,
    fragmentation_document,
    recommendations_document,
    waterfall_document,
)
from gpuwatch.render.plain import time_text
from gpuwatch.render.report import Lines, Report
from gpuwatch.render.reports.forecast import forecast_table
from gpuwatch.render.reports.fragmentation import fits_sections, headline_sections
from gpuwatch.render.reports.recommendations import (
    currency_of,
    group_table,
    recommendations_report,
    recommendations_table,
)
from gpuwatch.render.reports.waterfall import waterfall_sections

TOP = 10
SHAPES = 8
_ENVELOPE = ("evaluation_id", "cluster", "snapshot_taken_at")


def once_report(evaluation: Evaluation) -> Report:
    """Waterfall, index with causes, what fits, pool forecasts and the first recommendations; csv prints all advice."""
    first = evaluation.recommendations[:TOP]
    counted = len(evaluation.recommendations)
    title = f"Top {len(first)} of {counted} recommendations" if counted > TOP else "Recommendations"
    by_rule = (group_table("rule", evaluation.recommendations),) if counted else ()
    head = f"Cluster {evaluation.cluster} at {time_text(evaluation.snapshot_taken_at)}, evaluation {evaluation.id}"
    return Report(
        title=f"gpuwatch: {evaluation.cluster}",
        document=_document(evaluation),
        sections=(
            Lines(title="", lines=(head,)),
            *waterfall_sections(evaluation),
            *headline_sections(evaluation.fragmentation),
            *fits_sections(evaluation.fragmentation, SHAPES),
            forecast_table(_pool_totals(evaluation.forecasts), title="Demand forecast per pool"),
            *by_rule,
            recommendations_table(first, currency_of(first), title=title),
        ),
        flat=recommendations_report(evaluation, evaluation.recommendations).flat,
    )


def _pool_totals(forecasts: tuple[Forecast, ...]) -> tuple[Forecast, ...]:
    """The forecast of each named pool over all kinds; every one when there is no such total."""
    return tuple(each for each in forecasts if each.kind == "all" and each.pool != ALL_POOLS) or forecasts


def _document(evaluation: Evaluation) -> dict[str, Any]:
    parts = {
        "waterfall": waterfall_document(evaluation),
        "fragmentation": fragmentation_document(evaluation),
        "forecasts": forecasts_document(evaluation),
    }
    advice = recommendations_document(evaluation)
    skipped = [item for part in (*parts.values(), advice) for item in part["skipped"]]
    return {
        "schema": "gpuwatch.summary/1",
        **{key: advice[key] for key in _ENVELOPE},
        **parts,
        "items": advice["items"],
        # A broken stage is behind several parts and told once.
        "skipped": [item for at, item in enumerate(skipped) if item not in skipped[:at]],
    }
