"""What the exporter tells of its connection to a host engine of DCGM."""

from gpuwatch_exporters.device.family import gauge, node_counter, node_gauge

AVAILABLE = node_gauge("gpuwatch_exporter_dcgm_available", "1 while the host engine of DCGM answers, 0 otherwise.")
UNAVAILABLE_INFO = node_gauge(
    "gpuwatch_exporter_dcgm_unavailable_info",
    "Why the host engine does not answer, in the words of its error codes; always 1.",
    "reason",
)
CONNECTIONS = node_counter(
    "gpuwatch_exporter_dcgm_connections_total", "Times that the host engine was connected or started."
)
DROPPED = node_counter(
    "gpuwatch_exporter_dcgm_dropped_values_total",
    "Values that were not believed: older than three samples (stale), or no number that the field can have.",
    "reason",
)
HEALTH = gauge(
    "gpuwatch_gpu_dcgm_health",
    "How DCGM's background check of a part of the GPU ended: 0 passed, 10 warns, 20 failed.",
    "watch",
)
# Beside the families of the two directions: DCGM tells this one also where it may not profile.
NVLINK_TRAFFIC = gauge(
    "gpuwatch_gpu_nvlink_traffic_bytes_per_second", "Bytes over all NVLinks of the GPU in both directions, by DCGM."
)
