"""The catalogue of the daemon's own metrics: one table, from which the page docs/metrics.md is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. `name` is what a query writes (a counter's ends in _total). No label ever holds a job or device."""

    name: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    help: str
    absent: str = ""  # when it has no sample, in words


_SCOPE = ("cluster", "pool", "gpu_model")
_TARGET = ("cluster", "pool", "kind")

METRICS: tuple[Metric, ...] = (
    Metric(
        "gpuwatch_gpus",
        "gauge",
        (*_SCOPE, "state"),
        "GPUs by state of the waterfall, of one model in one pool: sums over pools and models are right",
        "the stage behind it failed",
    ),
    Metric(
        "gpuwatch_blocked_gpus",
        "gauge",
        (*_SCOPE, "cause"),
        "Installed GPUs that cannot be scheduled, by the one cause each is charged to",
        "nothing is blocked in the scope",
    ),
    Metric(
        "gpuwatch_fragmentation_index",
        "gauge",
        _SCOPE,
        "100 x stranded / free GPUs, 0 to 100, CPU-only shapes left out",
        "nothing is free in the scope, or no demand is known",
    ),
    Metric(
        "gpuwatch_stranded_milligpu",
        "gauge",
        ("cluster", "pool", "cause"),
        "Free thousandths of a GPU that the demand cannot take, by cause",
        "the stage behind it failed",
    ),
    Metric(
        "gpuwatch_shape_fits",
        "gauge",
        ("cluster", "pool", "shape"),
        "Members of this shape that could start now, one after the other; the 50 commonest shapes",
        "no demand is known",
    ),
    Metric("gpuwatch_demand_gpus", "gauge", _TARGET, "GPUs running or waiting", "nothing runs or waits there"),
    Metric("gpuwatch_pending_gpus", "gauge", _TARGET, "GPUs that wait", "nothing runs or waits there"),
    Metric(
        "gpuwatch_forecast_gpus",
        "gauge",
        (*_TARGET, "horizon", "forecast_quantile"),
        "GPUs demanded in the 1st, 6th and 24th hour ahead: the mean, and the ends of the intervals as quantiles",
        "too little history",
    ),
    Metric(
        "gpuwatch_forecast_skill_ratio",
        "gauge",
        _TARGET,
        "1 - error / error of repeating yesterday, on held-out hours; below 0 is worse than repeating",
        "too little history",
    ),
    Metric(
        "gpuwatch_forecast_coverage_ratio",
        "gauge",
        (*_TARGET, "level"),
        "Share of held-out hours inside the interval of this nominal level",
        "too little history",
    ),
    Metric(
        "gpuwatch_recommendations", "gauge", ("cluster", "rule", "severity"), "Pieces of advice", "the rule has none"
    ),
    Metric(
        "gpuwatch_recoverable_gpus",
        "gauge",
        ("cluster", "rule"),
        "GPUs that the advice gives back (idle_held), exchanges for lower ones (tier_mismatch) or makes usable "
        "(consolidate, mig_repartition); none is given back twice",
        "the rule has none",
    ),
    Metric(
        "gpuwatch_abstentions",
        "gauge",
        ("cluster", "rule", "reason"),
        "Subjects that a rule would not judge, by reason",
        "the rule judged everything",
    ),
    Metric(
        "gpuwatch_findings",
        "gauge",
        ("cluster", "code", "severity"),
        "Oddities met in the data and in the daemon",
        "none was met",
    ),
    Metric(
        "gpuwatch_snapshot_timestamp_seconds",
        "gauge",
        ("cluster",),
        "When the snapshot behind all of this was taken, in seconds since 1970",
        "no evaluation yet",
    ),
    Metric("gpuwatch_snapshot_age_seconds", "gauge", ("cluster",), "Age of that snapshot", "no evaluation yet"),
    Metric("gpuwatch_source_up", "gauge", ("source",), "1 when the source answered at the last try"),
    Metric(
        "gpuwatch_source_age_seconds",
        "gauge",
        ("source",),
        "Age of what the source last told",
        "it never told anything",
    ),
    Metric(
        "gpuwatch_store_up", "gauge", (), "1 when the store worked at the last evaluation", "no store is configured"
    ),
    Metric("gpuwatch_ready", "gauge", (), "1 when /readyz says ready"),
    Metric("gpuwatch_evaluations_total", "counter", (), "Evaluations published since start"),
    Metric(
        "gpuwatch_evaluation_duration_seconds",
        "gauge",
        ("stage",),
        "How long each stage took at the last evaluation",
        "no evaluation yet",
    ),
    Metric(
        "gpuwatch_evaluation_failures_total",
        "counter",
        ("stage",),
        "Failures of each stage since start; read is the source, store is the database",
        "the stage never failed",
    ),
    Metric("gpuwatch_build_info", "gauge", ("version",), "Always 1; which release this is"),
)

_PAGE_HEAD = """# Metrics of the daemon

Served at `/metrics`, for Prometheus, in its text format or OpenMetrics. Made from the catalogue in
`gpuwatch/render/metric_catalogue.py`; do not edit this page by hand.

- A value that is not known is absent. It is never 0.
- Counts of GPUs add up over pools and models: `sum by (state) (gpuwatch_gpus)` is the cluster's waterfall.
- An index does not add up, so `gpuwatch_fragmentation_index` is sent for every scope: `pool` and `gpu_model` are `all`
  where it speaks of every pool or every model.
- `pool="*"` is the demand of jobs that name no pool.
- `forecast_quantile` is not called `quantile`, which is kept for summaries and refused elsewhere by `promtool`.
- No label holds a job, a pod, a node or a device: the number of series stays bounded.

| metric | type | labels | what it says | absent when |
|---|---|---|---|---|
"""


def catalogue_page() -> str:
    """docs/metrics.md, whole."""
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels) or '-'} "
        f"| {each.help} | {each.absent or '-'} |\n"
        for each in METRICS
    ]
    return _PAGE_HEAD + "".join(rows)
