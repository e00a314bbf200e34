"""The metrics of NVIDIA's dcgm-exporter, each with what it is here: family, own labels, unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MIB = 1 / (1 << 20)
_PERCENT, _MILLI, _MHZ, _NANO, _MEGA = 100.0, 1e3, 1e-6, 1e9, 1e-6
_TRAFFIC = "gpuwatch_gpu_nvlink_traffic_bytes_per_second"
# The driver's bits; DCGM hands them on.
_REASONS = (
    "gpu_idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
    "hw_thermal_slowdown", "hw_power_brake", "display_clocks",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One metric. old: its name up to 4.8, None where it had none; `factor` is from our unit to that name's. new and
    new_factor: the same since 4.9. `families` are summed, `otherwise` is the family that holds the same where these are
    absent. `labels` are those of their own that a value must have. weights: by the one label of the family, what each
    value counts in the sum. whole: printed as a whole number.

    of: "board", what only the device has and dcgm-exporter repeats on each MIG instance; "instance", what each
    instance has of its own; "gpu", what a MIG instance has not.
    """

    old: str | None
    new: str | None
    kind: str
    help: str
    families: tuple[str, ...]
    labels: tuple[str, ...] = ()
    weights: Mapping[str, float] | None = None
    otherwise: str = ""
    factor: float = 1.0
    new_factor: float = 1.0
    of: str = "board"
    whole: bool = False
    new_help: str = ""


def _row(old: str | None, new: str | None, kind: str, help_: str, *families: str, **more: object) -> Row:
    names = tuple(f"gpuwatch_gpu_{each}" for each in families)
    return Row(f"DCGM_FI_{old}" if old else None, f"DCGM_FI_{new}" if new else None, kind, help_, names, **more)  # type: ignore[arg-type]


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


def _throttled(old: str, new: str, what: str, reason: str) -> Row:
    told = f"Time for which clocks were held down by {what} ({{}})."
    return _row(old, new, "counter", told.format("ns"), "throttle_seconds_total", labels=(reason,), factor=_NANO,
                whole=True, new_help=told.format("s"))  # fmt: skip


def _clock(old: str, new: str, what: str, domain: str) -> Row:
    return _row(old, new, "gauge", f"Clock of the {what} (MHz).", "clock_hertz", labels=(domain,), factor=_MHZ,
                whole=True, new_help=f"Clock of the {what} (Hz).")  # fmt: skip


def _limit(old: str, new: str, what: str, kind: str) -> Row:
    return _row(old, new, "gauge", f"Temperature at which {what} (degrees Celsius).", "temperature_limit_celsius",
                labels=(kind,))  # fmt: skip


def _ecc(name: str, what: str, *labels: str) -> Row:
    return _row(name, name, "counter", f"Memory errors {what}.", "ecc_errors_total", labels=labels)


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
    _row("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS", "gauge", "Power of the board (W).", "power_watts"),
    _row("DEV_ENFORCED_POWER_LIMIT", "DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", "gauge", "Power limit in force (W).",
         "power_limit_watts"),
    _row("DEV_POWER_MGMT_LIMIT", "DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", "gauge", "Power limit that was set (W).",
         "power_management_limit_watts"),
    _row("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_GPU_ENERGY_JOULES_TOTAL", "counter",
         "Energy since the driver was loaded (mJ).", "energy_joules_total", factor=_MILLI, whole=True,
         new_help="Energy since the driver was loaded (J)."),
    _row("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS", "gauge", "Temperature of the GPU (degrees Celsius).",
         "temperature_celsius"),
    _row("DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS", "gauge", "Temperature of the memory (degrees Celsius).",
         "memory_temperature_celsius"),
    _limit("DEV_SLOWDOWN_TEMP", "DEV_GPU_TEMP_SLOWDOWN_CELSIUS", "the GPU slows down", "slowdown"),
    _limit("DEV_SHUTDOWN_TEMP", "DEV_GPU_TEMP_SHUTDOWN_CELSIUS", "the GPU stops", "shutdown"),
    _clock("DEV_SM_CLOCK", "DEV_SM_CLOCK_HERTZ", "multiprocessors", "sm"),
    _clock("DEV_MEM_CLOCK", "DEV_MEMORY_CLOCK_HERTZ", "memory", "memory"),
    _clock("DEV_VIDEO_CLOCK", "DEV_VIDEO_CLOCK_HERTZ", "video engines", "video"),
    _row("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS", "gauge", "Why clocks are down, as bits.",
         "throttle_active", weights={reason: float(1 << bit) for bit, reason in enumerate(_REASONS)}),
    _throttled("DEV_POWER_VIOLATION", "DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "power", "sw_power_cap"),
    _throttled("DEV_THERMAL_VIOLATION", "DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", "heat", "thermal"),
    _throttled("DEV_SYNC_BOOST_VIOLATION", "DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", "other GPUs", "sync_boost"),
    _throttled("DEV_RELIABILITY_VIOLATION", "DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL", "voltage", "reliability"),
    _row("DEV_PSTATE", "DEV_GPU_PSTATE", "gauge", "P-state, 0 for full performance.", "performance_state"),
    _row("DEV_PCIE_REPLAY_COUNTER", "DEV_PCIE_REPLAY_TOTAL", "counter", "Packets sent again on the PCIe link.",
         "pcie_replays_total"),
    _row("DEV_PCIE_LINK_GEN", "DEV_PCIE_LINK_GEN", "gauge", "PCIe generation of the link.", "pcie_link_generation"),
    _row("DEV_PCIE_LINK_WIDTH", "DEV_PCIE_LINK_WIDTH", "gauge", "Lanes of the PCIe link.", "pcie_link_width"),
    _ecc("DEV_ECC_SBE_VOL_TOTAL", "corrected since the driver was loaded", "corrected", "volatile"),
    _ecc("DEV_ECC_DBE_VOL_TOTAL", "not corrected since the driver was loaded", "uncorrected", "volatile"),
    _ecc("DEV_ECC_SBE_AGG_TOTAL", "corrected in the board's life", "corrected", "aggregate"),
    _ecc("DEV_ECC_DBE_AGG_TOTAL", "not corrected in the board's life", "uncorrected", "aggregate"),
    _row("DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "counter",
         "Memory rows remapped after uncorrectable errors.", "remapped_rows", labels=("uncorrectable",)),
    _row("DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_CORRECTABLE_TOTAL", "counter",
         "Memory rows remapped after correctable errors.", "remapped_rows", labels=("correctable",)),
    _row("DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED", "gauge", "1 when a memory row could not be remapped.",
         "row_remap_failed"),
    _row("DEV_ROW_REMAP_PENDING", "DEV_ROW_REMAP_PENDING", "gauge", "1 when a remapped row waits for a reset.",
         "row_remap_pending"),
    _row("DEV_RETIRED_SBE", "DEV_PAGE_RETIRED_SBE_TOTAL", "counter", "Pages retired for corrected errors.",
         "retired_pages", labels=("single_bit",)),
    _row("DEV_RETIRED_DBE", "DEV_PAGE_RETIRED_DBE_TOTAL", "counter", "Pages retired for uncorrected errors.",
         "retired_pages", labels=("double_bit",)),
    _row("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "counter",
         "NVLink errors of flow control.", "nvlink_errors_total", labels=("crc_flit",)),
    _row("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "counter",
         "NVLink errors of data.", "nvlink_errors_total", labels=("crc_data",)),
    _row("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DEV_NVLINK_REPLAY_ERROR_TOTAL", "counter",
         "NVLink packets sent again.", "nvlink_errors_total", labels=("replay",)),
    _row("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DEV_NVLINK_RECOVERY_ERROR_TOTAL", "counter",
         "NVLink recoveries.", "nvlink_errors_total", labels=("recovery",)),
    _row("DEV_GPU_RECOVERY_ACTION", "DEV_GPU_RECOVERY_ACTION", "gauge", "What the GPU needs: 0 none, 1 reset ...",
         "recovery_action"),
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
         otherwise=_TRAFFIC, of="gpu"),
    _row(None, "DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "gauge",
         "NVLink traffic of all links, both ways (bytes per second).",
         "nvlink_transmit_bytes_per_second", "nvlink_receive_bytes_per_second", otherwise=_TRAFFIC, of="gpu"),
)  # fmt: skip
