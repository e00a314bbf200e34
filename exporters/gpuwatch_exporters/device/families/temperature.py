"""Temperatures, how far they are from their limits, and fans."""

from gpuwatch_exporters.device.family import gauge

TEMPERATURE = gauge("gpuwatch_gpu_temperature_celsius", "Temperature of the GPU.")
MEMORY = gauge("gpuwatch_gpu_memory_temperature_celsius", "Temperature of the device memory.")
LIMIT = gauge(
    "gpuwatch_gpu_temperature_limit_celsius",
    "Temperature at which something happens: slowdown, shutdown, highest in normal work of GPU and memory.",
    "kind",
)
MARGIN = gauge("gpuwatch_gpu_temperature_margin_celsius", "Degrees that are left before the GPU slows down.")
LIMIT_MARGIN = gauge(
    "gpuwatch_gpu_temperature_limit_margin_celsius",
    "Margin, as in gpuwatch_gpu_temperature_margin_celsius, at which something happens (Ada and newer).",
    "kind",
)
FAN_SPEED = gauge("gpuwatch_gpu_fan_speed_ratio", "Speed that the fan is told, as a share of its full speed.", "fan")
FAN_RPM = gauge("gpuwatch_gpu_fan_rotations_per_minute", "Speed of the first fan.")
