"""What the driver reports as errors: XIDs by code, other events, lines of the kernel log."""

from gpuwatch_exporters.device.family import counter, gauge, node_counter

XID_ERRORS = counter(
    "gpuwatch_gpu_xid_errors_total",
    "XID errors of each code, those in the kernel log from before this program started included.",
    "xid",
)
XID_LAST = gauge(
    "gpuwatch_gpu_xid_last_timestamp_seconds", "When the last XID error of each code happened, Unix time.", "xid"
)
XID_EVENTS = counter(
    "gpuwatch_gpu_xid_events_total",
    "XID errors of all codes; 0 from the start on, so that an increase shows the first one, too.",
)
DRIVER_EVENTS = counter(
    "gpuwatch_gpu_driver_events_total",
    "Events other than XIDs that the driver sent: double_bit_ecc, dram_retirement, poison, recovery_action ...",
    "event",
)
LOG_ERRORS = counter(
    "gpuwatch_gpu_kernel_log_errors_total",
    "Lines of the driver in the kernel log that tell a fault without an XID: fallen_off_bus, init_failed.",
    "kind",
)
UNIDENTIFIED_XIDS = node_counter(
    "gpuwatch_gpus_unidentified_xid_errors_total",
    "XID errors at a PCI address at which this program knows no GPU.",
    "pci_bus_id", "xid",
)  # fmt: skip
SWITCH_ERRORS = node_counter(
    "gpuwatch_gpus_nvswitch_errors_total",
    "SXID errors of the node's NVSwitches in the kernel log; severity is fatal or non_fatal.",
    "pci_bus_id", "sxid", "severity",
)  # fmt: skip
LOG_LINES = node_counter("gpuwatch_exporter_kernel_log_lines_total", "Records of the kernel log that were read.")
LOG_LOST = node_counter(
    "gpuwatch_exporter_kernel_log_overruns_total",
    "Times that the kernel overwrote records before they were read: XIDs among them were not counted.",
)
