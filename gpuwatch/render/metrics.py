"""An Evaluation and the daemon's own state as Prometheus families, made afresh for every scrape.

Nothing is kept between two scrapes, so that a pool or rule that is gone leaves no stale sample behind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpuwatch.model.evaluation import Evaluation, Forecast
from gpuwatch.model.snapshot import Finding, SourceHealth
from gpuwatch.model.units import MILLI
from gpuwatch.render.metric_catalogue import METRICS

Sample = tuple[str, tuple[str, ...], float]  # family, label values in catalogue order, value

ALL = "all"
_MAX_SHAPES = 50
_HORIZONS_HOURS = (1, 6, 24)
_STATES = ("installed", "healthy", "schedulable", "allocated", "active", "idle_held", "activity_unknown", "free")


@dataclass(frozen=True, slots=True)
class Operation:
    """What the daemon knows of itself at the moment of the scrape."""

    now: datetime
    sources: tuple[SourceHealth, ...] = ()
    store_ok: bool | None = None
    findings: tuple[Finding, ...] = ()  # about the daemon's own work
    stage_seconds: dict[str, float] = field(default_factory=dict)
    stage_failures: dict[str, int] = field(default_factory=dict)
    evaluations: int = 0
    ready: bool = False
    version: str = "unknown"


def metric_families(evaluation: Evaluation | None, operation: Operation | None = None) -> Iterator[Metric]:
    """The families with at least one sample, in catalogue order."""
    samples: dict[str, list[tuple[tuple[str, ...], float]]] = defaultdict(list)
    parts: list[Iterable[Sample]] = []
    if evaluation is not None:
        parts += [
            _counts(evaluation),
            _fragmentation(evaluation),
            _demand(evaluation),
            _forecasts(evaluation),
            _advice(evaluation),
            _findings(evaluation, operation),
        ]
    if operation is not None:
        parts.append(_operation(evaluation, operation))
    for part in parts:
        for name, labels, value in part:
            samples[name].append((labels, value))
    for each in METRICS:
        if each.name in samples:
            make = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            family = make(each.name, each.help, labels=each.labels)
            for labels, value in samples[each.name]:
                family.add_metric(labels, value)
            yield family


def registry(evaluation: Evaluation | None, operation: Operation | None = None) -> CollectorRegistry:
    """A registry of just these families, for an encoder."""

    class _Once(Collector):
        def collect(self) -> Iterable[Metric]:
            return metric_families(evaluation, operation)

    made = CollectorRegistry(auto_describe=False)
    made.register(_Once())
    return made


def _counts(evaluation: Evaluation) -> Iterator[Sample]:
    for each in evaluation.waterfall_scopes:
        if not each.is_cell:
            continue  # a sum over the cells is the wider scope; sending that too would count its GPUs again
        labels = (evaluation.cluster, each.pool or ALL, each.gpu_model or ALL)
        for state in _STATES:
            yield "gpuwatch_gpus", (*labels, state), getattr(each, f"{state}_milligpu") / MILLI
        blocked = each.installed_milligpu - each.schedulable_milligpu
        yield "gpuwatch_gpus", (*labels, "blocked"), blocked / MILLI
        for cause, milligpu in each.blocked.items():
            yield "gpuwatch_blocked_gpus", (*labels, cause), milligpu / MILLI


def _fragmentation(evaluation: Evaluation) -> Iterator[Sample]:
    report = evaluation.fragmentation
    if report is None:
        return
    for each in (report.overall, *report.scopes):
        labels = (evaluation.cluster, each.pool or ALL, each.gpu_model or ALL)
        if each.fragmentation_index is not None:
            yield "gpuwatch_fragmentation_index", labels, each.fragmentation_index
        if each.is_cell:
            yield "gpuwatch_gpus", (*labels, "stranded"), each.stranded_milligpu / MILLI
        elif each.pool is not None:
            for cause, milligpu in each.by_cause.items():
                yield "gpuwatch_stranded_milligpu", (evaluation.cluster, each.pool, cause), milligpu
    fits: Counter[str] = Counter()
    for shape in sorted(report.shapes, key=lambda s: (-s.share_ratio, s.shape.label))[:_MAX_SHAPES]:
        # Two shapes may print alike (memory is rounded): one series must not be sent twice.
        fits[shape.shape.label] = max(fits[shape.shape.label], shape.fits_now)
    for label, count in fits.items():
        yield "gpuwatch_shape_fits", (evaluation.cluster, ALL, label), count


def _demand(evaluation: Evaluation) -> Iterator[Sample]:
    for each in evaluation.demand:
        labels = (evaluation.cluster, each.pool, each.kind)
        yield "gpuwatch_demand_gpus", labels, each.demand_milligpu / MILLI
        yield "gpuwatch_pending_gpus", labels, each.pending_milligpu / MILLI


def _forecasts(evaluation: Evaluation) -> Iterator[Sample]:
    for each in evaluation.forecasts:
        labels = (evaluation.cluster, each.pool, each.kind)
        if each.skill_vs_seasonal_naive is not None:
            yield "gpuwatch_forecast_skill_ratio", labels, each.skill_vs_seasonal_naive
        for level, ratio in each.coverage_ratio.items():
            yield "gpuwatch_forecast_coverage_ratio", (*labels, level), ratio
        yield from _steps(each, labels, evaluation.snapshot_taken_at)


def _steps(forecast: Forecast, labels: tuple[str, ...], taken_at: datetime) -> Iterator[Sample]:
    ahead = [step for step in forecast.steps if step.at + timedelta(hours=1) > taken_at]
    for hours in _HORIZONS_HOURS:
        if hours > len(ahead):
            continue  # the forecast does not reach that far
        step, horizon = ahead[hours - 1], f"{hours}h"
        yield "gpuwatch_forecast_gpus", (*labels, horizon, "mean"), step.mean_gpus
        for level, ends in step.intervals.items():
            tail = (1 - float(level)) / 2
            for quantile, value in zip((tail, 1 - tail), ends, strict=True):
                yield "gpuwatch_forecast_gpus", (*labels, horizon, f"{quantile:.4g}"), value


def _advice(evaluation: Evaluation) -> Iterator[Sample]:
    cluster = evaluation.cluster
    counts = Counter((each.rule, each.severity) for each in evaluation.recommendations)
    for (rule, severity), count in sorted(counts.items()):
        yield "gpuwatch_recommendations", (cluster, rule, severity), count
    gpus: defaultdict[str, float] = defaultdict(float)
    for each in evaluation.recommendations:
        gpus[each.rule] += each.recoverable.gpus
    for rule, total in sorted(gpus.items()):
        yield "gpuwatch_recoverable_gpus", (cluster, rule), total
    reasons = Counter((each.rule, each.reason) for each in evaluation.abstentions)
    for (rule, reason), count in sorted(reasons.items()):
        yield "gpuwatch_abstentions", (cluster, rule, reason), count


def _findings(evaluation: Evaluation, operation: Operation | None) -> Iterator[Sample]:
    findings: Counter[tuple[str, str]] = Counter()
    for finding in (*evaluation.findings, *(operation.findings if operation else ())):
        findings[finding.code, finding.severity] += finding.count
    for (code, level), count in sorted(findings.items()):
        yield "gpuwatch_findings", (evaluation.cluster, code, level), count


def _operation(evaluation: Evaluation | None, operation: Operation) -> Iterator[Sample]:
    if evaluation is not None:
        taken_at = evaluation.snapshot_taken_at
        age = max(0.0, (operation.now - taken_at).total_seconds())
        yield "gpuwatch_snapshot_timestamp_seconds", (evaluation.cluster,), taken_at.timestamp()
        yield "gpuwatch_snapshot_age_seconds", (evaluation.cluster,), age
    for name, source in {each.name: each for each in operation.sources}.items():
        yield "gpuwatch_source_up", (name,), float(source.ok)
        if source.observed_at is not None:
            observed = (operation.now - source.observed_at).total_seconds()
            yield "gpuwatch_source_age_seconds", (name,), max(0.0, observed)
    if operation.store_ok is not None:
        yield "gpuwatch_store_up", (), float(operation.store_ok)
    yield "gpuwatch_ready", (), float(operation.ready)
    yield "gpuwatch_evaluations_total", (), operation.evaluations
    for stage, seconds in operation.stage_seconds.items():
        yield "gpuwatch_evaluation_duration_seconds", (stage,), seconds
    for stage, count in operation.stage_failures.items():
        yield "gpuwatch_evaluation_failures_total", (stage,), count
    yield "gpuwatch_build_info", (operation.version,), 1.0
