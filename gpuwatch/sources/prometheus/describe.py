"""What a server knows and lacks: the facts behind `gpuwatch doctor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpuwatch.dialects.dcgm import series_name
from gpuwatch.errors import SourceError
from gpuwatch.model.observations import Observations
from gpuwatch.model.units import HOUR_SECONDS
from gpuwatch.sources.prometheus.client import PrometheusClient
from gpuwatch.sources.prometheus.queries import selectors
from gpuwatch.sources.settings import PrometheusSettings, safe_url

HISTORY_LOOK_BACK_HOURS = 24 * 30

# What is lost without any of these names, in words.
NEEDS: dict[str, tuple[str, ...]] = {
    "engine activity (idle verdicts, MIG)": series_name("engine_active_ratio"),
    "utilization": series_name("utilization_ratio"),
    "memory used": series_name("memory_used_bytes"),
    "power": series_name("power_watts"),
    "temperature": series_name("temperature_celsius"),
    "driver events (XID; also absent when there was none)": series_name("xid"),
    "pod requests": ("kube_pod_container_resource_requests",),
    "pod phases": ("kube_pod_status_phase",),
    "pod owners": ("kube_pod_owner", "kube_pod_info"),
    "pod labels (workload kind)": ("kube_pod_labels",),
    "node capacity": ("kube_node_status_capacity",),
    "node allocatable": ("kube_node_status_allocatable",),
    "node labels (pool, product, replicas)": ("kube_node_labels",),
    "node readiness": ("kube_node_status_condition",),
    "cordons": ("kube_node_spec_unschedulable",),
    "scrape health": ("up",),
}


@dataclass(frozen=True, slots=True)
class PrometheusDescription:
    """clock_skew_seconds: the server's clock minus ours; history_hours: how far back node objects are known, at most
    30 days. Both None when the server would not say."""

    url: str
    dialects: tuple[str, ...]
    spellings: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]  # what is lost -> the names, any of which would do
    nodes: int
    pods: int
    devices: int
    targets_down: tuple[str, ...]
    clock_skew_seconds: float | None
    history_hours: int | None
    failures: Mapping[str, str] = field(default_factory=dict)  # query -> cause


def describe(
    client: PrometheusClient,
    settings: PrometheusSettings,
    now: datetime,
    observed: Observations,
    failures: Mapping[str, SourceError],
    elapsed: Callable[[], float],
) -> PrometheusDescription:
    """Describes what `observed` brought, and asks the server for its clock and the depth of its history.

    `elapsed`: seconds since `now`; a slow answer is not a clock that is ahead.
    """
    metrics = set(observed.metrics)
    exporters = {reading.target.job for reading in observed.readings if reading.target}
    uuids = {reading.device.uuid or (reading.device.host, reading.device.index) for reading in observed.readings}
    down = [s.target.instance for s in observed.targets if s.up is False and s.target.job in exporters]
    return PrometheusDescription(
        url=safe_url(settings.url),
        dialects=observed.dialects,
        spellings=observed.spellings,
        missing={need: any_of for need, any_of in NEEDS.items() if not metrics.intersection(any_of)},
        nodes=len(observed.nodes),
        pods=len(observed.pods),
        devices=len(uuids),
        targets_down=tuple(sorted(down)),
        clock_skew_seconds=_skew(client, now, elapsed),
        history_hours=_depth(client, settings, now),
        failures={name: error.code for name, error in failures.items()},
    )


def _skew(client: PrometheusClient, now: datetime, elapsed: Callable[[], float]) -> float | None:
    try:
        rows = client.instant("clock", "time()", None)
    except SourceError:
        return None
    return round(rows[0].points[0][1] - now.timestamp() - elapsed(), 3) if rows else None


def _depth(client: PrometheusClient, settings: PrometheusSettings, now: datetime) -> int | None:
    text = f"count(kube_node_info{{{selectors(settings.matchers)}}})"
    start = now - timedelta(hours=HISTORY_LOOK_BACK_HOURS)
    try:
        rows = client.range("history_depth", text, start, now, HOUR_SECONDS)
    except SourceError:
        return None
    first = min((row.points[0][0] for row in rows if row.points), default=None)
    return None if first is None else round((now.timestamp() - first) / HOUR_SECONDS)
