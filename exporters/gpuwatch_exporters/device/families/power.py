"""Power, its limits, and energy."""

from gpuwatch_exporters.device.family import counter, gauge

POWER = gauge(
    "gpuwatch_gpu_power_watts",
    "Power of the whole board as the driver reports it by default: the mean of the last second on Ampere and newer.",
)
AVERAGE = gauge("gpuwatch_gpu_power_average_watts", "Mean power of the last second, of a part of the module.", "part")
INSTANT = gauge("gpuwatch_gpu_power_instant_watts", "Power at the moment of reading, of a part of the module.", "part")
LIMIT = gauge("gpuwatch_gpu_power_limit_watts", "Power limit that is enforced now, the lowest of all that apply.")
MANAGEMENT_LIMIT = gauge("gpuwatch_gpu_power_management_limit_watts", "Power limit that the administrator set.")
DEFAULT_LIMIT = gauge("gpuwatch_gpu_power_default_limit_watts", "Power limit after a restart of the driver.")
MIN_LIMIT = gauge("gpuwatch_gpu_power_min_limit_watts", "Lowest power limit that can be set.")
MAX_LIMIT = gauge("gpuwatch_gpu_power_max_limit_watts", "Highest power limit that can be set.")
REQUESTED_LIMIT = gauge("gpuwatch_gpu_power_requested_limit_watts", "Power limit that was asked for, granted or not.")
EDPP = gauge("gpuwatch_gpu_edpp_multiplier_ratio", "Share of the peak current budget that the board may draw.")
ENERGY = counter("gpuwatch_gpu_energy_joules_total", "Energy of the whole board since the driver was loaded.")
SMOOTHING = gauge("gpuwatch_gpu_power_smoothing_enabled", "1 when changes of power are smoothed by the board.")
SMOOTHING_LIFE = gauge(
    "gpuwatch_gpu_power_smoothing_lifetime_ratio", "Remaining life of the circuit that smooths power, 0 to 1."
)
SMOOTHING_CEILING = gauge("gpuwatch_gpu_power_smoothing_ceiling_watts", "Highest power while smoothing is applied.")
SMOOTHING_FLOOR = gauge("gpuwatch_gpu_power_smoothing_floor_watts", "Lowest power while smoothing is applied.")
SMOOTHING_PROFILE = gauge("gpuwatch_gpu_power_smoothing_profile", "Number of the preset profile of smoothing in use.")
