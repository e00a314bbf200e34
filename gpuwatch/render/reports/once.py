"""Everything about one evaluation on one page: what `gpuwatch demo --once` prints."""

from __future__ import annotations

from typing import Any

from gpuwatch.model.evaluation import Evaluation
from gpuwatch.render.documents import (
    forecasts_document,
    fragmentation_document,
    recommendations_document,
    waterfall_document,
)
from gpuwatch.render.plain import time_text
from gpuwatch.render.report import Lines, Report
from gpuwatch.render.reports.forecast import forecast_table
from gpuwatch.render.reports.fragmentation import fragmentation_report, headline_sections
from gpuwatch.render.reports.recommendations import currency_of, recommendations_report, recommendations_table
from gpuwatch.render.reports.waterfall import waterfall_sections

TOP = 10
_ENVELOPE = ("evaluation_id", "cluster", "snapshot_taken_at")


def once_report(evaluation: Evaluation) -> Report:
    """Waterfall, index with causes, what fits, forecasts and the first recommendations; csv prints the advice."""
    first = evaluation.recommendations[:TOP]
    counted = len(evaluation.recommendations)
    title = f"Top {len(first)} of {counted} recommendations" if counted > TOP else "Recommendations"
    head = f"Cluster {evaluation.cluster} at {time_text(evaluation.snapshot_taken_at)}, evaluation {evaluation.id}"
    return Report(
        title=f"gpuwatch: {evaluation.cluster}",
        document=_document(evaluation),
        sections=(
            Lines(title="", lines=(head,)),
            *waterfall_sections(evaluation),
            *headline_sections(evaluation.fragmentation),
            *(section for section in fragmentation_report(evaluation).sections if section.title == "What fits now"),
            forecast_table(evaluation.forecasts),
            recommendations_table(first, currency_of(first), title=title),
        ),
        flat=recommendations_report(evaluation, evaluation.recommendations).flat,
    )


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
