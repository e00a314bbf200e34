"""The vocabulary of dcgm-exporter: names and units before 4.9 and since, both label spellings, MIG labels, XIDs.

The unit is decided by the metric's name, never by a version label: one scrape may hold names of both generations.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.dialects.dialect import DIALECTS
from gpuwatch.dialects.labels import own, target_of, text_of, whole_number
from gpuwatch.model.observations import DeviceRef, Dropped, Holder, Observations, Reading, Sample, Statistic
from gpuwatch.model.units import MIB


@dataclass(frozen=True)
class Column:
    """One metric: canonical field, factor to its unit, and the bounds outside which a value is not believed."""

    field: str
    factor: float
    low: float
    high: float
    scope: str  # gpu: the board's, repeated on each of its slices; instance: of the slice that the labels name
    code_label: str | None = None  # the reading is the number in this label, where the sample's value is above 0


def _ratio(field: str, factor: float = 1.0, scope: str = "instance") -> Column:
    # Exporters round: 100.4% is a full device, 101% is still read, what is beyond is no percentage.
    return Column(field, factor, 0.0, 1.01, scope)


def _bytes(field: str, factor: float = 1.0) -> Column:
    return Column(field, factor, 0.0, 2.0**44, "instance")


def _gpu(field: str, low: float, high: float, code_label: str | None = None) -> Column:
    return Column(field, 1.0, low, high, "gpu", code_label)


# GPU_UTIL is the board's: with MIG on it is 0 or absent, and must never be read as a slice's own.
TABLE: dict[str, Column] = {
    "DCGM_FI_DEV_GPU_UTIL": _ratio("utilization_ratio", 0.01, "gpu"),
    "DCGM_FI_DEV_GPU_UTIL_RATIO": _ratio("utilization_ratio", 1.0, "gpu"),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _ratio("engine_active_ratio"),
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": _ratio("engine_active_ratio"),
    "DCGM_FI_PROF_SM_ACTIVE": _ratio("engine_active_ratio"),
    "DCGM_FI_PROF_SM_UTIL_RATIO": _ratio("engine_active_ratio"),
    "DCGM_FI_DEV_FB_USED": _bytes("memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_USED_BYTES": _bytes("memory_used_bytes"),
    "DCGM_FI_DEV_FB_FREE": _bytes("memory_free_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE_BYTES": _bytes("memory_free_bytes"),
    "DCGM_FI_DEV_FB_RESERVED": _bytes("memory_reserved_bytes", MIB),
    "DCGM_FI_DEV_FB_RESERVED_BYTES": _bytes("memory_reserved_bytes"),
    "DCGM_FI_DEV_FB_TOTAL": _bytes("memory_total_bytes", MIB),
    "DCGM_FI_DEV_FB_CAPACITY_BYTES": _bytes("memory_total_bytes"),
    "DCGM_FI_DEV_POWER_USAGE": _gpu("power_watts", 0, 10_000),
    "DCGM_FI_DEV_BOARD_POWER_WATTS": _gpu("power_watts", 0, 10_000),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": _gpu("power_limit_watts", 0, 10_000),
    "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS": _gpu("power_limit_watts", 0, 10_000),
    "DCGM_FI_DEV_GPU_TEMP": _gpu("temperature_celsius", -50, 250),
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS": _gpu("temperature_celsius", -50, 250),
    "DCGM_FI_DEV_XID_ERRORS": _gpu("xid", 0, 10_000),
    "DCGM_FI_DEV_XID_ERROR": _gpu("xid", 0, 10_000),
    "DCGM_EXP_XID_ERRORS_COUNT": _gpu("xid", 0, 10_000, code_label="xid"),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": _gpu("row_remap_failed", 0, 10_000),
    "DCGM_FI_DEV_ROW_REMAP_FAILED": _gpu("row_remap_failed", 0, 10_000),
    "DCGM_EXP_GPU_HEALTH_STATUS": _gpu("health_status", 0, 100),
}

# "No value" markers of older builds: blank, not found, not supported, no permission, as 64-bit, 32-bit and floating
# numbers. The first group is not exact in a double, hence the bound instead of a list.
_BLANK_ABOVE = 2.0**62
_BLANKS = frozenset(range(2147483632, 2147483636)) | {140737488355328.0 + i for i in range(4)}

HOST_LABELS = ("Hostname", "hostname", "node", "kubernetes_node")
UUID_LABELS = ("UUID", "uuid", "gpu_uuid")
_POD = ("pod", "pod_name")
_NAMESPACE = ("namespace", "pod_namespace")
_SELF = re.compile(r"(dcgm|gpu|nvidia).*exporter")


@dataclass(frozen=True)
class DcgmDialect:
    """See the module."""

    metrics: frozenset[str] = frozenset(TABLE)

    def read(self, samples: Sequence[Sample]) -> Observations:
        readings: list[Reading] = []
        dropped: Counter[tuple[str, str]] = Counter()
        spellings: set[str] = set()
        moved = {target_of(sample.labels) for sample in samples if "exported_pod" in sample.labels}
        for sample in samples:
            column = TABLE[sample.metric]
            number = _number(sample, column)
            if isinstance(number, str):
                dropped[sample.metric, number] += 1
                continue
            if number is None:
                continue
            target = target_of(sample.labels)
            readings.append(
                Reading(
                    device=_device(sample, column, spellings),
                    field=column.field,
                    value=number,
                    statistic=sample.statistic,
                    holder=_holder(sample, target in moved, spellings),
                    target=target,
                    board=column.scope == "gpu",
                )
            )
        return Observations(
            readings=tuple(readings),
            dropped=tuple(Dropped(metric=m, reason=r, count=n) for (m, r), n in sorted(dropped.items())),
            spellings=tuple(sorted(spellings)),
        )


def series_name(field: str, statistic: Statistic = "now") -> tuple[str, ...]:
    """The metrics that carry `field`, old names first: what a source asks for and a recommendation can cite.

    A code that sits in a label has no peak or mean, so such metrics are left out of windows.
    """
    return tuple(name for name, c in TABLE.items() if c.field == field and (statistic == "now" or not c.code_label))


def _number(sample: Sample, column: Column) -> float | str | None:
    """The canonical number, the reason why it is dropped, or None where the sample says nothing."""
    raw = sample.value
    if not math.isfinite(raw):
        return "not_finite"
    if sample.statistic == "samples":
        return raw if raw >= 0 else "out_of_range"
    if raw > _BLANK_ABOVE or raw in _BLANKS:
        return "sentinel"
    if column.code_label is not None:
        code = whole_number(text_of(sample.labels, column.code_label))
        if code is None:
            return "unknown_label"
        return float(code) if raw > 0 else None
    number = raw * column.factor
    if not column.low <= number <= column.high:
        return "out_of_range"
    return min(number, 1.0) if column.high == 1.01 else number


def _device(sample: Sample, column: Column, spellings: set[str]) -> DeviceRef:
    labels = sample.labels
    host, host_name = own(labels, HOST_LABELS)
    uuid, uuid_name = own(labels, UUID_LABELS)
    spellings.update(name for name in (host_name, uuid_name) if name)
    mig_id, profile = text_of(labels, "GPU_I_ID"), text_of(labels, "GPU_I_PROFILE")
    if profile in ("NULL", "N/A"):
        profile = None
    return DeviceRef(
        host=host,
        uuid=normalized_uuid(uuid),
        uuid_text=uuid,
        index=whole_number(text_of(labels, "gpu")),
        mig_id=mig_id,
        mig_profile=profile if mig_id else None,
        product=text_of(labels, "modelName", "model_name"),
    )


def _holder(sample: Sample, moved: bool, spellings: set[str]) -> Holder | None:
    labels = sample.labels
    pod, pod_name = own(labels, _POD)
    namespace, _ = own(labels, _NAMESPACE)
    if pod is None or namespace is None or pod_name is None:
        return None
    # Where the scraper moves labels aside, a plain `pod` is the exporter's own; where it does not, the exporter shows
    # itself by name only.
    if not pod_name.startswith("exported_") and (moved or _SELF.search(pod)):
        return None
    spellings.add(pod_name)
    return Holder(namespace=namespace, pod=pod)


def normalized_uuid(uuid: str | None) -> str | None:
    """One spelling of a device's id: "GPU-" and lower case; "MIG-GPU-x/3/0" is a slice of GPU-x."""
    if not uuid:
        return None
    body = uuid.removeprefix("MIG-").split("/")[0]
    return "GPU-" + body.removeprefix("GPU-").lower() if not uuid.startswith("MIG-") or "GPU-" in uuid else uuid


DIALECTS.register("dcgm")(DcgmDialect())
