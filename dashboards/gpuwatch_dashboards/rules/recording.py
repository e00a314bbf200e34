"""The normalized layer `gpuwatch:*`: alerts and dashboards read only this, so one exporter change is one row here."""

from __future__ import annotations

from typing import Any

from gpuwatch_dashboards.rules import metrics as m
from gpuwatch_dashboards.rules.promql import (
    IDENTITY,
    implausible,
    per_device,
    reading,
    seen_devices,
    with_identity,
    with_workload,
)
from gpuwatch_dashboards.thresholds import Thresholds

INTERVAL = "30s"
INTERVAL_SECONDS = 30

_WHOLE = 'GPU_I_ID=""'
_INSTANCE = 'GPU_I_ID!=""'
_WATCHED = (m.TEMPERATURE, m.POWER, m.MEMORY_USED, m.UTILIZATION)
_PRESENCE = f'{{__name__=~"{m.any_of(*_WATCHED)}"'
_INSTANCES = f'{{__name__=~"{m.any_of(m.MEMORY_USED, m.POWER, m.ENGINE_ACTIVE)}", GPU_I_ID!=""}}'
# Without honor_labels the plain pod label names the exporter's own pod on every series.
_HELD = (
    f'{_PRESENCE}, exported_pod!=""}}'
    f'\n  or {_PRESENCE}, exported_pod="", pod!="", pod!~".*(dcgm|gpuwatch)-exporter.*"}}'
    f'\n  or {_PRESENCE}, pod_name!=""}}\n  or {_PRESENCE}, hpc_job!=""}}'
)
_QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}


def _devices(thresholds: Thresholds) -> list[tuple[str, str]]:
    used = "gpuwatch:gpu_memory_used:bytes"
    held = seen_devices(_HELD, workloads=True)
    return [
        ("gpuwatch:gpu_present:bool", f"group by ({IDENTITY}) (\n  {with_identity(seen_devices(_PRESENCE + '}'))}\n)"),
        ("gpuwatch:gpu_mig:bool", f"group by ({IDENTITY}) (\n  {with_identity(seen_devices(_INSTANCES))}\n)"),
        (
            "gpuwatch:gpu_workload:info",
            f"group by ({IDENTITY}, namespace, workload) (\n  {with_workload(with_identity(held))}\n)",
        ),
        (
            "gpuwatch:gpu_allocated:bool",
            f"group by ({IDENTITY}) (gpuwatch:gpu_workload:info)\n"
            "or (0 * gpuwatch:gpu_present:bool and on (cluster) gpuwatch:gpu_workload:info)",
        ),
        (
            # The driver reports no utilization for a device in MIG mode, or 0: its engines speak for it.
            "gpuwatch:gpu_utilization:ratio",
            f"(\n  {per_device(reading(m.UTILIZATION, _WHOLE))}\n"
            "  unless on (cluster, hostname, uuid) gpuwatch:gpu_mig:bool\n)\n"
            f"or {per_device(reading(m.ENGINE_ACTIVE, _INSTANCE))}",
        ),
        (used, per_device(reading(m.MEMORY_USED), "GPU_I_ID")),
        ("gpuwatch:gpu_memory_free:bytes", per_device(reading(m.MEMORY_FREE), "GPU_I_ID")),
        ("gpuwatch:gpu_memory_reserved:bytes", per_device(reading(m.MEMORY_RESERVED), "GPU_I_ID")),
        (
            # The default metric set has no total: it is the sum of its parts.
            "gpuwatch:gpu_memory_total:bytes",
            f"{per_device(reading(m.MEMORY_TOTAL), 'GPU_I_ID')}\n"
            f"or ({used} + gpuwatch:gpu_memory_free:bytes"
            f" + (gpuwatch:gpu_memory_reserved:bytes or 0 * {used}))",
        ),
        (
            "gpuwatch:gpu_memory_used:ratio",
            f"max by ({IDENTITY}) ({used} / (gpuwatch:gpu_memory_total:bytes > 0))",
        ),
        ("gpuwatch:gpu_power:watts", per_device(reading(m.POWER))),
        ("gpuwatch:gpu_power_limit:watts", per_device(reading(m.POWER_LIMIT))),
        ("gpuwatch:gpu_power:ratio", "gpuwatch:gpu_power:watts / (gpuwatch:gpu_power_limit:watts > 0)"),
        ("gpuwatch:gpu_temperature:celsius", per_device(reading(m.TEMPERATURE))),
        # A limit below 50 C is a card that does not tell it.
        ("gpuwatch:gpu_slowdown:celsius", f"{per_device(reading(m.SLOWDOWN))} > 50"),
        ("gpuwatch:gpu_temperature_margin:celsius", "gpuwatch:gpu_slowdown:celsius - gpuwatch:gpu_temperature:celsius"),
        ("gpuwatch:gpu_nvlink:bytes_per_second", per_device(reading(m.NVLINK, _WHOLE))),
        ("gpuwatch:gpu_nvlink_capacity:bytes_per_second", _nvlink_capacity(thresholds)),
        (
            "gpuwatch:gpu_nvlink:ratio",
            "gpuwatch:gpu_nvlink:bytes_per_second / gpuwatch:gpu_nvlink_capacity:bytes_per_second",
        ),
        (
            "gpuwatch:host_blank_gpus:count",
            f"count by (cluster, hostname) (\n  {with_identity(f'({implausible(*_WATCHED)})')}\n)",
        ),
        (
            "gpuwatch:host_cordoned:bool",
            "max by (cluster, hostname) (\n"
            '  label_replace(kube_node_spec_unschedulable, "hostname", "$1", "node", "(.+)")\n)',
        ),
    ]


def _nvlink_capacity(thresholds: Thresholds) -> str:
    table: dict[str, int] = thresholds.get("nvlink_bytes_per_second").value
    return "\nor ".join(
        f'gpuwatch:gpu_present:bool{{model=~"{pattern}"}} * {rate:.15g}' for pattern, rate in table.items()
    )


def _clusters() -> list[tuple[str, str]]:
    by_model = "by (cluster, model)"
    out = [
        ("gpuwatch:model_gpus:count", f"count {by_model} (gpuwatch:gpu_present:bool)"),
        ("gpuwatch:model_gpus_held:count", f"sum {by_model} (gpuwatch:gpu_allocated:bool)"),
        ("gpuwatch:model_utilization:avg", f"avg {by_model} (gpuwatch:gpu_utilization:ratio)"),
        ("gpuwatch:model_memory_used:avg", f"avg {by_model} (gpuwatch:gpu_memory_used:ratio)"),
        ("gpuwatch:model_power:watts_sum", f"sum {by_model} (gpuwatch:gpu_power:watts)"),
        ("gpuwatch:model_power_limit:watts_sum", f"sum {by_model} (gpuwatch:gpu_power_limit:watts)"),
        ("gpuwatch:model_power:ratio_max", f"max {by_model} (gpuwatch:gpu_power:ratio)"),
        ("gpuwatch:model_temperature:celsius_max", f"max {by_model} (gpuwatch:gpu_temperature:celsius)"),
        ("gpuwatch:model_temperature_margin:celsius_min", f"min {by_model} (gpuwatch:gpu_temperature_margin:celsius)"),
        ("gpuwatch:cluster_utilization:avg", "avg by (cluster) (gpuwatch:gpu_utilization:ratio)"),
    ]
    out += [
        (f"gpuwatch:cluster_utilization:{name}", f"quantile by (cluster) ({q}, gpuwatch:gpu_utilization:ratio)")
        for name, q in _QUANTILES.items()
    ]
    return out


def _pools() -> list[tuple[str, str]]:
    index = "gpuwatch:pool_fragmentation:index"
    return [
        (index, 'max by (cluster, pool) (gpuwatch_fragmentation_index{pool!="all", gpu_model="all"})'),
        (
            # Work that waits for this pool, and work that names no pool ("*") and could go there.
            "gpuwatch:pool_waiting:gpus",
            f"(sum by (cluster, pool) (gpuwatch_pending_gpus) and {index} or 0 * {index})\n"
            f'+ (0 * {index} + on (cluster) group_left () sum by (cluster) (gpuwatch_pending_gpus{{pool="*"}})'
            f" or 0 * {index})",
        ),
    ]


def recording_groups(thresholds: Thresholds) -> list[dict[str, Any]]:
    """The rule groups, in the order in which they must be evaluated."""
    return [
        {
            "name": name,
            "interval": INTERVAL,
            "rules": [{"record": record, "expr": expression} for record, expression in rules],
        }
        for name, rules in (
            ("gpuwatch-devices", _devices(thresholds)),
            ("gpuwatch-clusters", _clusters()),
            ("gpuwatch-pools", _pools()),
        )
    ]
