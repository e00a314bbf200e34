"""The few queries that a snapshot needs, as a table: what each asks, and what is unknown without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.dialects.dcgm import TABLE, series_name
from gpuwatch.dialects.kube_state_metrics import POD_TABLE
from gpuwatch.model.observations import Statistic
from gpuwatch.sources.settings import PrometheusSettings

# The functions of a window drop the metric's name; it travels in this label instead.
NAME_LABEL = "gpuwatch_metric"
GPU_RESOURCES = ".*gpu.*|nvidia_com_mig_.*"

_REQUESTS = ("kube_pod_container_resource_requests", "kube_pod_init_container_resource_requests")
_PHASE = "kube_pod_status_phase"
_CONDITION = "kube_node_status_condition"
_NODE_FACTS = (
    "kube_node_info",
    "kube_node_labels",
    "kube_node_status_capacity",
    "kube_node_status_allocatable",
    "kube_node_spec_unschedulable",
    "kube_node_spec_taint",
)
_POD_FACTS = tuple(sorted(set(POD_TABLE) - {*_REQUESTS, _PHASE}))
_PEAKS = ("engine_active_ratio", "utilization_ratio", "memory_used_bytes")
_MEANS = ("engine_active_ratio", "utilization_ratio", "power_watts")
_COUNTS = ("engine_active_ratio", "utilization_ratio")


@dataclass(frozen=True, slots=True)
class Query:
    """One question. Without the answer to a required one there is no snapshot; `unknown` is what others cost."""

    name: str
    text: str
    statistic: Statistic = "now"
    required: bool = False
    metric: str | None = None  # the name of every series, where the answer does not carry it
    unknown: str = ""


def snapshot_queries(settings: PrometheusSettings) -> tuple[Query, ...]:
    """All queries of one snapshot."""
    window, match = f"[{settings.window_seconds}s]", settings.matchers
    requested = {"resource=~": f"cpu|memory|{GPU_RESOURCES}"}
    capacity = names(_NODE_FACTS, match)
    ready = f"{_CONDITION}{{{selectors(match, {'condition=': 'Ready'})}}} == 1"
    return (
        Query("pod_requests", names(_REQUESTS, match, requested), required=True),
        Query("pod_phases", f"{_PHASE}{{{selectors(match)}}} == 1", required=True),
        Query("nodes", capacity, required=True),
        Query("node_conditions", ready, unknown="whether nodes are ready"),
        Query("pods", names(_POD_FACTS, match), unknown="owners, labels, ages and terminating pods"),
        Query("devices", names(tuple(TABLE), match), unknown="device telemetry and which pod holds which device"),
        Query("targets", f"up{{{selectors(match)}}}", metric="up", unknown="whether exporters answer"),
        Query(
            "scrapes",
            scrapes_due(settings.window_seconds, match),
            "samples",
            metric="up",
            unknown="how full the windows should be, and so every idle verdict",
        ),
        Query("peaks", _window("max_over_time", "peak", _PEAKS, window, match), "peak", unknown=_IDLE),
        Query("means", _window("avg_over_time", "mean", _MEANS, window, match), "mean", unknown=_IDLE),
        Query("counts", _window("count_over_time", "samples", _COUNTS, window, match), "samples", unknown=_IDLE),
    )


def scrapes_due(window_seconds: int, match: Mapping[str, str]) -> str:
    """How many scrapes of each target the window should hold, at the rate of its busiest third.

    Counting the scrapes of the whole window would call it full however young the server is, and a job idle for half an
    hour on the word of its first seconds. n scrapes in a third are n - 1 intervals; a target with fewer than two in
    every third has no known rate and no answer.
    """
    third = max(1, window_seconds // 3)
    parts = " or ".join(
        f"label_replace(count_over_time(up{{{selectors(match)}}}[{third}s]"
        f'{f" offset {part * third}s" if part else ""}), "gpuwatch_part", "{part}", "", "")'
        for part in range(3)
    )
    return f"3 * (max without (gpuwatch_part) ({parts}) - 1) > 0"


_IDLE = "activity over the window, and so every idle verdict"


def names(metrics: tuple[str, ...], match: Mapping[str, str], extra: Mapping[str, str] | None = None) -> str:
    """One selector for several metrics."""
    listed = {"__name__=~": "|".join(metrics)}
    return f"{{{selectors(match, {**listed, **(extra or {})})}}}"


def selectors(match: Mapping[str, str], extra: Mapping[str, str] | None = None) -> str:
    """The inside of a selector: `extra` keys carry their operator, `match` keys are plain label names."""
    parts = [f"{key}{_quoted(text)}" for key, text in (extra or {}).items()]
    return ",".join([*parts, *(f"{key}={_quoted(text)}" for key, text in match.items())])


def _window(function: str, statistic: Statistic, fields: tuple[str, ...], window: str, match: Mapping[str, str]) -> str:
    metrics = [name for field in fields for name in series_name(field, statistic)]
    return " or ".join(
        f'label_replace({function}({name}{{{selectors(match)}}}{window}), "{NAME_LABEL}", "{name}", "", "")'
        for name in metrics
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
