"""The DCGM names behind each normalized reading: one row per quantity, older and newer name generation side by side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """One metric name, what its value is multiplied by, and the largest value that can be a reading.

    Older DCGM builds print blanks as huge numbers; anything above `plausible_max` (in the metric's unit) is dropped.
    """

    metric: str
    factor: float
    plausible_max: float


MIB = 1048576.0

UTILIZATION = (
    Spelling("DCGM_FI_DEV_GPU_UTIL", 0.01, 100),
    Spelling("DCGM_FI_DEV_GPU_UTIL_RATIO", 1, 1),
)
ENGINE_ACTIVE = (
    Spelling("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, 1),
    Spelling("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1, 1),
)
MEMORY_USED = (
    Spelling("DCGM_FI_DEV_FB_USED", MIB, 1e8),
    Spelling("DCGM_FI_DEV_FB_USED_BYTES", 1, 1e14),
)
MEMORY_TOTAL = (
    Spelling("DCGM_FI_DEV_FB_TOTAL", MIB, 1e8),
    Spelling("DCGM_FI_DEV_FB_CAPACITY_BYTES", 1, 1e14),
)
MEMORY_FREE = (
    Spelling("DCGM_FI_DEV_FB_FREE", MIB, 1e8),
    Spelling("DCGM_FI_DEV_FB_FREE_BYTES", 1, 1e14),
)
MEMORY_RESERVED = (
    Spelling("DCGM_FI_DEV_FB_RESERVED", MIB, 1e8),
    Spelling("DCGM_FI_DEV_FB_RESERVED_BYTES", 1, 1e14),
)
POWER = (
    Spelling("DCGM_FI_DEV_POWER_USAGE", 1, 1e5),
    Spelling("DCGM_FI_DEV_BOARD_POWER_WATTS", 1, 1e5),
)
POWER_LIMIT = (
    Spelling("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1, 1e5),
    Spelling("DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", 1, 1e5),
)
TEMPERATURE = (
    Spelling("DCGM_FI_DEV_GPU_TEMP", 1, 200),
    Spelling("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1, 200),
)
SLOWDOWN = (
    Spelling("DCGM_FI_DEV_SLOWDOWN_TEMP", 1, 200),
    Spelling("DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS", 1, 200),
)
NVLINK = (
    # The first two are one field, renamed: a rate in MB/s that falls, though typed as a counter. Never inside rate().
    Spelling("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 1e6, 1e8),
    Spelling("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 1e6, 1e8),
    Spelling("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1, 1e14),
)

ALL = (
    UTILIZATION,
    ENGINE_ACTIVE,
    MEMORY_USED,
    MEMORY_TOTAL,
    MEMORY_FREE,
    MEMORY_RESERVED,
    POWER,
    POWER_LIMIT,
    TEMPERATURE,
    SLOWDOWN,
    NVLINK,
)
"""Every quantity, for the metric allow-list."""


def any_of(*quantities: tuple[Spelling, ...]) -> str:
    """A `__name__` pattern that matches every spelling of the given quantities."""
    return "|".join(spelling.metric for quantity in quantities for spelling in quantity)
