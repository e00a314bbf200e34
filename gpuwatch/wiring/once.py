"""One evaluation of one input, in process; nothing is kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gpuwatch.clock import Clock, SystemClock
from gpuwatch.config import InputSpec
from gpuwatch.errors import SourceError
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import HISTORY_HOURS, History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.sources.first import read_first
from gpuwatch.wiring.inputs import inputs, need_analytics

log = logging.getLogger("gpuwatch")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation with all that went into it."""

    snapshot: ClusterSnapshot
    history: History
    evaluation: Evaluation
    settings: AnalysisSettings


def evaluate_once(spec: InputSpec, clock: Clock | None = None) -> Evaluated:
    """Reads the input, evaluates it once and keeps nothing. Raises GpuwatchError when the input cannot be read."""
    need_analytics()
    from gpuwatch.engine import evaluate

    sources, settings, cluster = inputs(spec)
    if spec.forecast_models is not None:
        settings = replace(settings, forecast_models=spec.forecast_models)
    # The generated cluster is asked for its own fixed instant, so that two runs print the same.
    now = _demo_instant() if spec.kind == "generated" else (clock or SystemClock()).now()
    answer = read_first(sources, now)
    if answer.snapshot is None:
        raise answer.error or SourceError("no source answered")
    snapshot = replace(answer.snapshot, cluster=cluster or answer.snapshot.cluster, sources=answer.health)
    history = _past(answer.source, snapshot.taken_at)
    return Evaluated(snapshot, history, evaluate(snapshot, history, settings), settings)


def describe_sources(spec: InputSpec, clock: Clock | None = None) -> list[tuple[str, Any]]:
    """(name, description) of every source of the input that can say what it knows and lacks; the facts behind doctor.

    A source that does not answer stands with its SourceError.
    """
    now = (clock or SystemClock()).now()
    told: list[tuple[str, Any]] = []
    for source in inputs(spec)[0]:
        if hasattr(source, "describe"):
            try:
                told.append((source.name, source.describe(now)))
            except SourceError as err:
                told.append((source.name, err))
    return told


def _past(source: object, now: datetime) -> History:
    if not hasattr(source, "demand_history"):
        return History()
    try:
        found: History = source.demand_history(now, HISTORY_HOURS)
        return found
    except SourceError as err:  # the present is worth having without its past
        log.warning("the source cannot tell its past demand: %s", err)
        return History()


def _demo_instant() -> datetime:
    from gpuwatch.simulate.cluster import DEFAULT_TAKEN_AT

    return DEFAULT_TAKEN_AT
