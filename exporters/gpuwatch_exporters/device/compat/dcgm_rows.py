"""The metrics of NVIDIA's dcgm-exporter, each with what it is here: family, own labels, unit."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 / (1 << 20)
_PERCENT, _MILLI, _MHZ, _NANO, _MEGA = 100.0, 1e3, 1e-6, 1e9, 1e-6


@dataclass(frozen=True, slots=True)
class Row:
    """One metric. old: its name up to 4.8, with `factor` from our unit to its own; new: its name since 4.9, with
    `new_factor`, None where that has none of its own. `families` are summed; `labels` are those of their own that a
    value must have, None for any, whose values are summed, too. whole: printed as a whole number.

    of: "board", what only the device has and dcgm-exporter repeats on each MIG instance; "instance", what each
    instance has of its own; "gpu", what a MIG instance has not.
    """

    old: str
    new: str | None
    kind: str
    help: str
    families: tuple[str, ...]
    labels: tuple[str, ...] | None = ()
    factor: float = 1.0
    new_factor: float = 1.0
    of: str = "board"
    whole: bool = False
    new_help: str = ""


def _row(old: str, new: str | None, kind: str, help_: str, *families: str, **more: object) -> Row:
    names = tuple(f"gpuwatch_gpu_{each}" for each in families)
    return Row(f"DCGM_FI_{old}", f"DCGM_FI_{new}" if new else None, kind, help_, names, **more)  # type: ignore[arg-type]


def _percent(old: str, new: str, help_: str, family: str, of: str = "board") -> Row:
    told = f"{help_} ({{}})."
    return _row(old, new, "gauge", told.format("percent"), family, factor=_PERCENT, of=of, whole=True,
                new_help=told.format("0 to 1"))  # fmt: skip


def _mebibytes(old: str, new: str, help_: str, family: str) -> Row:
    told = f"{help_} ({{}})."
    return _row(old, new, "gauge", told.format("MiB"), family, factor=_MIB, of="instance", whole=True,
                new_help=told.format("bytes"))  # fmt: skip


def _share(old: str, new: str, help_: str, family: str) -> Row:
    return _row(old, new, "gauge", f"{help_} (0 to 1).", family, of="instance")


def _throttled(old: str, new: str, what: str, *reasons: str) -> Row:
    told = f"Time for which clocks were held down by {what} ({{}})."
    return _row(old, new, "counter", told.format("ns"), "throttle_seconds_total", labels=reasons, factor=_NANO,
                whole=True, new_help=told.format("s"))  # fmt: skip


ROWS: tuple[Row, ...] = (
    _percent("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO", "Time with a kernel running", "utilization_ratio", of="gpu"),
    _percent("DEV_MEM_COPY_UTIL", "DEV_MEMORY_UTIL_RATIO", "Time in which memory was read or written",
             "memory_controller_utilization_ratio", of="gpu"),
    _percent("DEV_ENC_UTIL", "DEV_ENC_UTIL_RATIO", "Time in which the encoder worked", "encoder_utilization_ratio",
             of="gpu"),
    _percent("DEV_DEC_UTIL", "DEV_DEC_UTIL_RATIO", "Time in which the decoder worked", "decoder_utilization_ratio",
             of="gpu"),
    _mebibytes("DEV_FB_TOTAL", "DEV_FB_CAPACITY_BYTES", "Memory there is", "memory_total_bytes"),
    _mebibytes("DEV_FB_USED", "DEV_FB_USED_BYTES", "Memory in use", "memory_used_bytes"),
    _mebibytes("DEV_FB_FREE", "DEV_FB_FREE_BYTES", "Memory free", "memory_free_bytes"),
    _mebibytes("DEV_FB_RESERVED", "DEV_FB_RESERVED_BYTES", "Memory that driver and firmware keep",
               "memory_reserved_bytes"),
    _share("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO", "Time with any engine active",
           "graphics_active_ratio"),
    _share("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO", "Cycles with a warp on a multiprocessor", "sm_active_ratio"),
    _share("PROF_SM_OCCUPANCY", "PROF_SM_OCCUPANCY_RATIO", "Warps resident, of those possible", "sm_occupancy_ratio"),
    _share("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO", "Cycles with the tensor pipe active",
           "tensor_active_ratio"),
    _share("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO", "Cycles with memory traffic", "dram_active_ratio"),
    _share("PROF_PIPE_FP64_ACTIVE", "PROF_FP64_UTIL_RATIO", "Cycles with the 64-bit pipe active", "fp64_active_ratio"),
    _share("PROF_PIPE_FP32_ACTIVE", "PROF_FP32_UTIL_RATIO", "Cycles with the 32-bit pipe active", "fp32_active_ratio"),
    _share("PROF_PIPE_FP16_ACTIVE", "PROF_FP16_UTIL_RATIO", "Cycles with the 16-bit pipe active", "fp16_active_ratio"),
    _row("PROF_PCIE_TX_BYTES", "PROF_PCIE_TX_BYTES", "gauge", "PCIe traffic sent (bytes per second).",
         "pcie_transmit_bytes_per_second", of="gpu"),
    _row("PROF_PCIE_RX_BYTES", "PROF_PCIE_RX_BYTES", "gauge", "PCIe traffic received (bytes per second).",
         "pcie_receive_bytes_per_second", of="gpu"),
    _row("PROF_NVLINK_TX_BYTES", "PROF_NVLINK_TX_BYTES", "gauge", "NVLink traffic sent (bytes per second).",
         "nvlink_transmit_bytes_per_second", of="gpu"),
    _row("PROF_NVLINK_RX_BYTES", "PROF_NVLINK_RX_BYTES", "gauge", "NVLink traffic received (bytes per second).",
         "nvlink_receive_bytes_per_second", of="gpu"),
    _row("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_NVLINK_THROUGHPUT_TOTAL", "gauge",
         "NVLink traffic of all links, both ways (MB/s).",
         "nvlink_transmit_bytes_per_second", "nvlink_receive_bytes_per_second", factor=_MEGA, new_factor=_MEGA,
         of="gpu"),
)  # fmt: skip
