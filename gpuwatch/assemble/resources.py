"""Resource names of GPU schedulers, and the part of a device that an amount of them is.

The names are those of kube-state-metrics, which writes every dot, slash and dash of a resource name as an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.model.units import MIB, MILLI

WHOLE = ("nvidia_com_gpu", "amd_com_gpu")
SHARED = ("nvidia_com_gpu_shared",)
COUNTED = ("alibabacloud_com_gpu_count",)  # devices, each with alibabacloud_com_gpu_milli thousandths
MILLI_PER_DEVICE = "alibabacloud_com_gpu_milli"
CORES_PERCENT = "nvidia_com_gpucores"  # HAMi: percent of each device's compute
MEMORY_MIB = "nvidia_com_gpumem"  # HAMi: MiB of each device
MEMORY_PERCENT = "nvidia_com_gpumem_percentage"
CPU = "cpu"
MEMORY = "memory"

_MIG = re.compile(r"nvidia_com_mig_(\d)g_(\d{1,3})gb((?:_\w+)?)")
_MIG_IN_PRODUCT = re.compile(r"-MIG-(\dg\.\d{1,3}gb)(\.\w+)?", re.IGNORECASE)


def mig_profile(resource: str) -> str | None:
    """ "1g.10gb" of "nvidia_com_mig_1g_10gb", "1g.10gb+me" of "nvidia_com_mig_1g_10gb_me"; None for other names."""
    found = _MIG.fullmatch(resource)
    return f"{found[1]}g.{found[2]}gb{found[3].replace('_', '+')}" if found else None


def product_mig_profile(product: str | None) -> str | None:
    """The slice profile that a node label names when every device is cut alike: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"."""
    found = _MIG_IN_PRODUCT.search(product or "")
    return found[1].lower() + (found[2] or "").replace(".", "+") if found else None


def is_gpu(resource: str) -> bool:
    """Does asking for this resource mean asking for a GPU?"""
    return resource in (*WHOLE, *SHARED, *COUNTED, MILLI_PER_DEVICE) or mig_profile(resource) is not None


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What a pod asks for: `gpus` devices (or slices of `profile`), `milligpu` thousandths of each."""

    gpus: int
    milligpu: int = MILLI
    profile: str | None = None


def gpu_asks(
    amounts: Mapping[str, float], *, replicas: int = 1, whole_is_profile: str | None = None, memory_bytes: int | None
) -> list[GpuAsk]:
    """The GPU part of a pod's amounts; empty for a CPU-only pod. More than one entry for a pod of mixed slices.

    `replicas`: shares that the node offers of each device under the names of WHOLE and SHARED.
    `whole_is_profile`: the slice profile that WHOLE means on a node whose devices are all cut alike.
    `memory_bytes`: a device's memory there, for amounts told in MiB; unknown counts the device as whole.
    """
    asks = [GpuAsk(_ceil(n), profile=p) for name, n in sorted(amounts.items()) if n > 0 and (p := mig_profile(name))]
    plain = sum(amounts.get(name, 0.0) for name in WHOLE)
    shared = sum(amounts.get(name, 0.0) for name in SHARED)
    counted = sum(amounts.get(name, 0.0) for name in COUNTED)
    if plain > 0 and whole_is_profile:
        asks.append(GpuAsk(_ceil(plain), profile=whole_is_profile))
    elif plain > 0 and (fraction := _hami_milligpu(amounts, memory_bytes)) is not None:
        asks.append(GpuAsk(_ceil(plain), fraction))
    elif plain + shared > 0:
        asks.append(_of_replicas(_ceil(plain + shared), replicas))
    if counted > 0 or (amounts.get(MILLI_PER_DEVICE, 0.0) > 0 and plain == 0):
        asks.append(GpuAsk(max(1, _ceil(counted)), _clipped(amounts.get(MILLI_PER_DEVICE, float(MILLI)))))
    return asks


def _of_replicas(wanted: int, replicas: int) -> GpuAsk:
    """Several replicas are booked on one device as far as they fit on it: which ones they are, nobody says."""
    if wanted >= replicas:
        return GpuAsk(-(-wanted // replicas))
    return GpuAsk(1, MILLI * wanted // replicas)


def _hami_milligpu(amounts: Mapping[str, float], memory_bytes: int | None) -> int | None:
    """The larger of the compute and the memory part, since either can fill a device; None without HAMi amounts."""
    parts = [amounts[name] / 100 for name in (CORES_PERCENT, MEMORY_PERCENT) if amounts.get(name, 0.0) > 0]
    if amounts.get(MEMORY_MIB, 0.0) > 0:
        parts.append(amounts[MEMORY_MIB] * MIB / memory_bytes if memory_bytes else 1.0)
    return _clipped(max(parts) * MILLI) if parts else None


def _clipped(milligpu: float) -> int:
    return min(MILLI, max(1, round(milligpu)))


def _ceil(amount: float) -> int:
    return int(-(-amount // 1))
