"""Device memory and the window through which the host sees it."""

from gpuwatch_exporters.device.family import gauge

TOTAL = gauge("gpuwatch_gpu_memory_total_bytes", "Device memory, what the driver reserves included.")
USED = gauge("gpuwatch_gpu_memory_used_bytes", "Device memory allocated by programs; without what the driver reserves.")
FREE = gauge("gpuwatch_gpu_memory_free_bytes", "Device memory that can be allocated.")
RESERVED = gauge(
    "gpuwatch_gpu_memory_reserved_bytes",
    "Device memory that driver and firmware keep: total is used, free and reserved together.",
)
MODEL_INFO = gauge(
    "gpuwatch_gpu_memory_model_info",
    "Whose memory it is: dedicated, or unified with the host's, and then the device tells no amounts; always 1.",
    "model",
)
BAR1_TOTAL = gauge(
    "gpuwatch_gpu_bar1_total_bytes", "Size of the window (BAR1) through which the host maps device memory."
)
BAR1_USED = gauge("gpuwatch_gpu_bar1_used_bytes", "Part of the BAR1 window that is mapped.")
BAR1_FREE = gauge("gpuwatch_gpu_bar1_free_bytes", "Part of the BAR1 window that is not mapped.")
