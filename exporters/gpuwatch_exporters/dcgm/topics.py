"""What is watched, by topic. A topic is a field group of its own: what fails in one leaves the others.

Fields go by their numbers. DCGM 4.6 renamed most of them, and gave new numbers to those that changed their unit; the
numbers here are of one unit in all releases. Their names are those of DCGM up to 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpuwatch_exporters.dcgm.layout import GPU, GPU_INSTANCE
from gpuwatch_exporters.dcgm.topic import Field, Topic

MIB = float(1 << 20)
PERCENT, MILLI, NANO, MHZ, MEGA = 0.01, 1e-3, 1e-9, 1e6, 1e6


def _on(family: str, factor: float = 1.0, *labels: str) -> Field:
    return Field(f"gpuwatch_gpu_{family}", labels, factor)


def _limit(kind: str) -> Field:
    return Field("gpuwatch_gpu_temperature_limit_celsius", (kind,), zero_is_none=True)


def _choice(family: str, choices: Mapping[int, float]) -> Field:
    return Field(f"gpuwatch_gpu_{family}", choices=choices)


def _throttled(reason: str) -> Field:
    # Nanoseconds, whatever older lists of counters say.
    return _on("throttle_seconds_total", NANO, reason)


_ALL = (GPU, GPU_INSTANCE)
_REASONS = (
    "gpu_idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
    "hw_thermal_slowdown", "hw_power_brake", "display_clocks",
)  # fmt: skip
_OFF_ON = {0: 0.0, 1: 1.0}
_JOINED = {1: 0.0, 2: 0.0, 3: 1.0, 4: 0.0}  # not started, in progress, success, failure

TOPICS: Mapping[str, Topic] = MappingProxyType(
    {
        "utilization": Topic(
            {
                203: _on("utilization_ratio", PERCENT),  # GPU_UTIL
                204: _on("memory_controller_utilization_ratio", PERCENT),  # MEM_COPY_UTIL
            }
        ),
        "media": Topic(
            {
                206: _on("encoder_utilization_ratio", PERCENT),  # ENC_UTIL
                207: _on("decoder_utilization_ratio", PERCENT),  # DEC_UTIL
            }
        ),
        "memory": Topic(
            {
                250: _on("memory_total_bytes", MIB),  # FB_TOTAL
                251: _on("memory_free_bytes", MIB),  # FB_FREE
                252: _on("memory_used_bytes", MIB),  # FB_USED
                253: _on("memory_reserved_bytes", MIB),  # FB_RESERVED
            },
            _ALL,
        ),
        "bar1": Topic(
            {
                90: _on("bar1_total_bytes", MIB),
                92: _on("bar1_used_bytes", MIB),
                93: _on("bar1_free_bytes", MIB),
            }
        ),
        "power": Topic(
            {
                155: _on("power_watts"),  # POWER_USAGE
                157: _on("power_instant_watts", 1.0, "gpu"),  # POWER_USAGE_INSTANT
                164: _on("power_limit_watts"),  # ENFORCED_POWER_LIMIT
            }
        ),
        "power_limits": Topic(
            {
                160: _on("power_management_limit_watts"),  # POWER_MGMT_LIMIT
                161: _on("power_min_limit_watts"),
                162: _on("power_max_limit_watts"),
                163: _on("power_default_limit_watts"),
            },
            slow=True,
        ),
        "energy": Topic({156: _on("energy_joules_total", MILLI)}),  # TOTAL_ENERGY_CONSUMPTION
        "temperature": Topic(
            {
                150: _on("temperature_celsius"),  # GPU_TEMP
                140: Field("gpuwatch_gpu_memory_temperature_celsius", zero_is_none=True),  # MEMORY_TEMP
                153: _on("temperature_margin_celsius"),  # GPU_TEMP_LIMIT
            }
        ),
        "temperature_limits": Topic(
            {151: _limit("memory_max"), 152: _limit("gpu_max"), 158: _limit("slowdown"), 159: _limit("shutdown")},
            slow=True,
        ),
        "clocks": Topic(
            {
                100: _on("clock_hertz", MHZ, "sm"),  # SM_CLOCK
                101: _on("clock_hertz", MHZ, "memory"),  # MEM_CLOCK
                102: _on("clock_hertz", MHZ, "video"),  # VIDEO_CLOCK
            }
        ),
        "clock_settings": Topic(
            {
                110: _on("clock_target_hertz", MHZ, "sm"),  # APP_SM_CLOCK
                111: _on("clock_target_hertz", MHZ, "memory"),
                113: _on("clock_max_hertz", MHZ, "sm"),  # MAX_SM_CLOCK
                114: _on("clock_max_hertz", MHZ, "memory"),
                115: _on("clock_max_hertz", MHZ, "video"),
            },
            slow=True,
        ),
        "throttle": Topic(
            {112: Field("gpuwatch_gpu_throttle_active", bits=dict(enumerate(_REASONS)))}  # CLOCK_THROTTLE_REASONS
        ),
        "throttle_time": Topic(
            {
                240: _throttled("sw_power_cap"),  # POWER_VIOLATION
                241: _throttled("thermal"),  # THERMAL_VIOLATION
                242: _throttled("sync_boost"),
                243: _throttled("board_limit"),
                244: _throttled("low_utilization"),
                245: _throttled("reliability"),
                246: _throttled("application_clocks"),  # TOTAL_APP_CLOCKS_VIOLATION
                247: _throttled("base_clocks"),
            }
        ),
        "ecc": Topic(
            {
                310: _on("ecc_errors_total", 1.0, "corrected", "volatile"),  # ECC_SBE_VOL_TOTAL
                311: _on("ecc_errors_total", 1.0, "uncorrected", "volatile"),  # ECC_DBE_VOL_TOTAL
                312: _on("ecc_errors_total", 1.0, "corrected", "aggregate"),
                313: _on("ecc_errors_total", 1.0, "uncorrected", "aggregate"),
            }
        ),
        "ecc_mode": Topic(
            {300: _choice("ecc_enabled", _OFF_ON), 301: _choice("ecc_pending_enabled", _OFF_ON)}, slow=True
        ),
        "row_remapping": Topic(
            {
                393: _on("remapped_rows", 1.0, "uncorrectable"),  # UNCORRECTABLE_REMAPPED_ROWS
                394: _on("remapped_rows", 1.0, "correctable"),
                395: _on("row_remap_failed"),  # ROW_REMAP_FAILURE
                396: _on("row_remap_pending"),
            }
        ),
        "page_retirement": Topic(
            {
                390: _on("retired_pages", 1.0, "single_bit"),  # RETIRED_SBE
                391: _on("retired_pages", 1.0, "double_bit"),
                392: _choice("page_retirement_pending", _OFF_ON),
            },
            slow=True,
        ),
        "pcie": Topic(
            {
                202: _on("pcie_replays_total"),  # PCIE_REPLAY_COUNTER
                237: _on("pcie_link_generation"),  # PCIE_LINK_GEN
                238: _on("pcie_link_width"),
            }
        ),
        "pcie_limits": Topic(
            {235: _on("pcie_link_generation_max"), 236: _on("pcie_link_width_max")},  # PCIE_MAX_LINK_GEN, _WIDTH
            slow=True,
        ),
        "performance_state": Topic(
            {190: _choice("performance_state", {each: float(each) for each in range(16)})}
        ),  # PSTATE
        "settings": Topic({66: _choice("persistence_mode_enabled", _OFF_ON)}, slow=True),  # PERSISTENCE_MODE
        "fans": Topic({191: _on("fan_speed_ratio", PERCENT, "0")}),  # FAN_SPEED
        "nvlink_errors": Topic(
            {
                409: _on("nvlink_errors_total", 1.0, "crc_flit"),  # NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
                419: _on("nvlink_errors_total", 1.0, "crc_data"),
                429: _on("nvlink_errors_total", 1.0, "replay"),
                439: _on("nvlink_errors_total", 1.0, "recovery"),
            }
        ),
        # Both directions, in units of 1000000: what there is without profiling.
        "nvlink_traffic": Topic({449: _on("nvlink_traffic_bytes_per_second", MEGA)}),  # NVLINK_BANDWIDTH_TOTAL
        "fabric": Topic(
            {
                170: _choice("fabric_joined", _JOINED),  # FABRIC_MANAGER_STATUS
                175: _choice("fabric_healthy", {1: 1.0, 2: 0.0, 3: 0.0}),  # FABRIC_HEALTH_SUMMARY
            },
            slow=True,
        ),
        "recovery": Topic({1523: _on("recovery_action")}),  # GPU_RECOVERY_ACTION
        "c2c": Topic({285: _on("c2c_links")}, slow=True),  # C2C_LINK_COUNT
        "mig": Topic({67: _choice("mig_enabled", _OFF_ON)}, slow=True),  # MIG_MODE
        "xid": Topic({230: _on("xid_events_total")}, events=True),  # XID_ERRORS
        # Hardware counters: before Hopper only one program can have them, and it needs root.
        "profiling": Topic(
            {
                1001: _on("graphics_active_ratio"),  # PROF_GR_ENGINE_ACTIVE
                1002: _on("sm_active_ratio"),
                1003: _on("sm_occupancy_ratio"),
                1004: _on("tensor_active_ratio"),  # PROF_PIPE_TENSOR_ACTIVE
                1005: _on("dram_active_ratio"),
                1006: _on("fp64_active_ratio"),
                1007: _on("fp32_active_ratio"),
                1008: _on("fp16_active_ratio"),
                1013: _on("tensor_pipe_active_ratio", 1.0, "imma"),  # PROF_PIPE_TENSOR_IMMA_ACTIVE
                1014: _on("tensor_pipe_active_ratio", 1.0, "hmma"),
                1015: _on("tensor_pipe_active_ratio", 1.0, "dfma"),
                1016: _on("integer_active_ratio"),  # PROF_PIPE_INT_ACTIVE
            },
            _ALL,
        ),
        "profiling_links": Topic(  # of the board alone: a slice has no link of its own
            {
                1009: _on("pcie_transmit_bytes_per_second"),  # PROF_PCIE_TX_BYTES
                1010: _on("pcie_receive_bytes_per_second"),
                1011: _on("nvlink_transmit_bytes_per_second"),  # PROF_NVLINK_TX_BYTES
                1012: _on("nvlink_receive_bytes_per_second"),
            }
        ),
    }
)
