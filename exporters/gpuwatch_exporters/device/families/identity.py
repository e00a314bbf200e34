"""Which devices there are, who they are, and whether they answer."""

from gpuwatch_exporters.device.family import gauge, node_gauge

INFO = gauge(
    "gpuwatch_gpu_info",
    "Static facts of the device, joined to its values by uuid; always 1.",
    "model", "pci_bus_id", "serial", "minor", "driver_version",
)  # fmt: skip
UP = gauge(
    "gpuwatch_gpu_up", "1 when the device answered in this cycle, 0 when it is lost, hung, suspended or released."
)
DOWN_INFO = gauge("gpuwatch_gpu_down_info", "Why a device is not up; 1, and absent for a device that is up.", "reason")
MIG_INSTANCE_INFO = gauge(
    "gpuwatch_gpu_mig_instance_info",
    "One MIG instance: its profile and the memory slices that it takes, counted from 0; always 1.",
    "profile", "mig_uuid", "placement_start", "placement_size",
)  # fmt: skip
WORKLOAD_INFO = gauge(
    "gpuwatch_gpu_workload_info",
    "Who holds the device or MIG instance, one series per holder, joined by uuid; always 1.",
    "namespace", "pod", "container", "job_id", "user", "source",
)  # fmt: skip
WORKLOADS = gauge("gpuwatch_gpu_workloads", "Holders of the device or MIG instance: above 1 where it is shared.")
EXPECTED = node_gauge(
    "gpuwatch_gpus_expected",
    "GPUs that should be here: on the PCI bus, or seen before and not replaced; or as the exporter is told.",
)
VISIBLE = node_gauge("gpuwatch_gpus_visible", "GPUs that the library lists in this cycle and that are not lost.")
