"""The NVLink fabric behind NVSwitches: whether the GPU has joined it, and how it fares in it."""

from gpuwatch_exporters.device.family import gauge

STATE = gauge(
    "gpuwatch_gpu_fabric_state",
    "How far the GPU came in joining the NVLink fabric: 1 not started, 2 in progress, 3 completed; absent without one.",
)
INFO = gauge(
    "gpuwatch_gpu_fabric_info",
    "The fabric that the GPU is in: its cluster, the clique whose members reach each other, the state and how joining "
    "ended (success or an error); always 1.",
    "cluster_uuid", "clique_id", "state", "status",
)  # fmt: skip
JOINED = gauge("gpuwatch_gpu_fabric_joined", "1 when joining the fabric is completed and succeeded, 0 when it is not.")
HEALTHY = gauge("gpuwatch_gpu_fabric_healthy", "1 when the driver sums the fabric's health up as healthy, 0 otherwise.")
HEALTH_INFO = gauge(
    "gpuwatch_gpu_fabric_health_info", "The sum of it: healthy, unhealthy, limited_capacity; always 1.", "summary"
)
FAULT = gauge(
    "gpuwatch_gpu_fabric_fault",
    "1 for a fault of the fabric that the driver tells, 0 where it rules it out; absent where it does not look.",
    "fault",
)
CONFIGURATION_INFO = gauge(
    "gpuwatch_gpu_fabric_configuration_fault_info", "What is wrong with the fabric's configuration; always 1.", "reason"
)
