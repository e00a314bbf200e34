"""How well the exporter knows who holds the devices."""

from gpuwatch_exporters.device.family import node_counter, node_gauge

SOURCE_UP = node_gauge(
    "gpuwatch_exporter_holder_source_up",
    "1 when the holders that this source knows are in this page, 0 when they are unknown: then a device that no "
    "series names may be held all the same.",
    "source",
)
SOURCE_DOWN = node_gauge(
    "gpuwatch_exporter_holder_source_down_info", "Why a source of holders tells nothing; always 1.", "source", "reason"
)
AGE = node_gauge("gpuwatch_exporter_holder_source_age_seconds", "Age of what the source told last.", "source")
FAILURES = node_counter(
    "gpuwatch_exporter_holder_lookup_failures_total",
    "Times that a source, or one job or process in it, could not be read, by reason.",
    "source", "reason",
)  # fmt: skip
UNKNOWN_DEVICES = node_gauge(
    "gpuwatch_exporter_holder_unknown_devices",
    "GPUs that a source names as held and that are none of this node's devices or MIG instances.",
    "source",
)
