"""Processes with a context on a device."""

from gpuwatch_exporters.device.family import gauge

PROCESSES = gauge(
    "gpuwatch_gpu_processes",
    "Processes that are alive and have a context on the device, by kind: compute, graphics, mps (clients of MPS).",
    "kind",
)
MEMORY = gauge(
    "gpuwatch_gpu_processes_memory_bytes",
    "Device memory of these processes together; absent unless the driver tells it of each of them.",
)
STALE = gauge(
    "gpuwatch_gpu_processes_stale",
    "Process ids that the driver lists and that are not there: ended, or of another pid namespace.",
)
PROCESS_MEMORY = gauge(
    "gpuwatch_gpu_process_memory_bytes",
    "Device memory of one process, of the largest ones only; off unless asked for.",
    "pid", "name", "kind",
)  # fmt: skip
