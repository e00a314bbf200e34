"""What the exporter tells of its own work on the devices: sources, features, failures."""

from gpuwatch_exporters.device.family import gauge, node_counter, node_gauge

COLLECTING = node_gauge("gpuwatch_exporter_collecting", "0 while the devices are released on request, 1 otherwise.")
NVML_AVAILABLE = node_gauge(
    "gpuwatch_exporter_nvml_available", "1 when NVIDIA's library is open and talks to the driver, 0 otherwise."
)
NVML_UNAVAILABLE_INFO = node_gauge(
    "gpuwatch_exporter_nvml_unavailable_info",
    "Why the library is not available: library_not_found, driver_not_loaded, lib_rm_version_mismatch ...; always 1.",
    "reason",
)
NVML_INFO = node_gauge(
    "gpuwatch_exporter_nvml_info", "Versions that the library tells; always 1.",
    "driver_version", "library_version", "cuda_version",
)  # fmt: skip
NVML_INITS = node_counter(
    "gpuwatch_exporter_nvml_inits_total", "Times that the library was opened, the first included."
)
OPEN_DEVICE_FILES = node_gauge(
    "gpuwatch_exporter_open_device_files", "Device files of GPUs that this process holds open: 0 once released."
)
FEATURES = node_gauge(
    "gpuwatch_exporter_features",
    "GPUs on which a feature is on or off and why; for a feature of the node 1.",
    "feature", "state", "reason",
)  # fmt: skip
CALL_FAILURES = node_counter(
    "gpuwatch_exporter_call_failures_total",
    "Calls to the library that gave an error in place of a value; calls that are not supported are not counted.",
    "function", "error",
)  # fmt: skip
GROUP_FAILURES = node_counter(
    "gpuwatch_exporter_group_failures_total",
    "Times that a feature broke off by a fault of this program; the other features went on.",
    "feature",
)  # fmt: skip
DEVICE_TIMEOUTS = node_counter(
    "gpuwatch_exporter_device_timeouts_total", "Times that a device had not answered by the end of a cycle."
)
FEATURE_OFF_INFO = gauge(
    "gpuwatch_gpu_feature_off_info", "A feature that gives no value on this device, and why; always 1.",
    "feature", "reason",
)  # fmt: skip
SUSPENDED = gauge(
    "gpuwatch_gpu_suspended",
    "1 while the device sleeps (runtime power management) and is not asked, 0 while it is awake.",
)
READ_SECONDS = gauge("gpuwatch_gpu_read_seconds", "How long it took to read the device in this cycle.")
LISTED = node_gauge(
    "gpuwatch_gpus_listed",
    "GPUs that each source lists: the PCI bus (pci), the kernel driver (driver), NVIDIA's library (library).",
    "source",
)  # fmt: skip
UNIDENTIFIED_INFO = node_gauge(
    "gpuwatch_gpus_unidentified_info",
    "A GPU whose uuid neither library, driver nor memory tells, by PCI address or index:N; always 1.",
    "device", "reason",
)  # fmt: skip
