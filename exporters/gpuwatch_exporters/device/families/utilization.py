"""How busy a device is, as the driver's own samples tell."""

from gpuwatch_exporters.device.family import gauge

UTILIZATION = gauge("gpuwatch_gpu_utilization_ratio", "Share of the last sample period with a kernel running, 0 to 1.")
MEMORY_CONTROLLER = gauge(
    "gpuwatch_gpu_memory_controller_utilization_ratio",
    "Share of the last sample period in which device memory was read or written, 0 to 1; not how full it is.",
)
