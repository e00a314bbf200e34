"""Clocks, and what keeps them down."""

from gpuwatch_exporters.device.family import counter, gauge

CLOCK = gauge("gpuwatch_gpu_clock_hertz", "Clock of the domain (graphics, sm, memory, video) now.", "domain")
MAX = gauge("gpuwatch_gpu_clock_max_hertz", "Highest clock of the domain.", "domain")
BOOST_MAX = gauge(
    "gpuwatch_gpu_clock_boost_max_hertz", "Highest clock that the board's default boost allows.", "domain"
)
TARGET = gauge("gpuwatch_gpu_clock_target_hertz", "Application clock that the administrator set.", "domain")
DEFAULT = gauge("gpuwatch_gpu_clock_default_hertz", "Application clock after a reset.", "domain")
THROTTLE_ACTIVE = gauge(
    "gpuwatch_gpu_throttle_active",
    "1 while the reason keeps clocks down, 0 while it does not; a bit without a name in this version is bit_N.",
    "reason",
)
THROTTLE_SECONDS = counter(
    "gpuwatch_gpu_throttle_seconds_total", "Time that the reason kept clocks down, counted by the driver.", "reason"
)
