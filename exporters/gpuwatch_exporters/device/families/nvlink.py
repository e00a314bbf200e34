"""NVLink: which links are up, what went over them, what went wrong on them."""

from gpuwatch_exporters.device.family import counter, gauge

LINKS = gauge("gpuwatch_gpu_nvlink_links", "NVLinks that the GPU has.")
LINKS_UP = gauge(
    "gpuwatch_gpu_nvlink_links_up", "NVLinks that are up; fewer than there are may be a fault or a choice."
)
SWITCH_LINKS = gauge("gpuwatch_gpu_nvlink_switch_links", "NVLinks of the GPU that lead to an NVSwitch.")
LINK_UP = gauge("gpuwatch_gpu_nvlink_link_up", "1 when the link is up, 0 when it is not.", "link")
LINK_INFO = gauge(
    "gpuwatch_gpu_nvlink_link_info",
    "Version of the link, and what is at its other end: gpu, switch, cpu or unknown, and its PCI address; always 1.",
    "link", "version", "remote", "remote_pci_bus_id",
)  # fmt: skip
LINK_SPEED = gauge(
    "gpuwatch_gpu_nvlink_link_speed_bytes_per_second", "What the link can carry in each direction.", "link"
)
TRANSMITTED = counter(
    "gpuwatch_gpu_nvlink_transmitted_bytes_total",
    "Bytes sent over all links: the data alone, or all with the protocol's own.",
    "traffic",
)
RECEIVED = counter(
    "gpuwatch_gpu_nvlink_received_bytes_total",
    "Bytes received over all links: the data alone, or all with the protocol's own.",
    "traffic",
)
ERRORS = counter(
    "gpuwatch_gpu_nvlink_errors_total",
    "Errors on all links of the GPU by kind: crc_flit, crc_data, replay, recovery, ecc_data.",
    "kind",
)
LINK_ERRORS = counter(
    "gpuwatch_gpu_nvlink_link_errors_total",
    "Errors on one link by kind; up to Hopper replay, recovery, crc and ecc, from Blackwell on packets and symbols.",
    "link", "kind",
)  # fmt: skip
LINK_TRANSMITTED = counter(
    "gpuwatch_gpu_nvlink_link_transmitted_bytes_total", "Bytes sent over one link (Blackwell and later).", "link"
)
LINK_RECEIVED = counter(
    "gpuwatch_gpu_nvlink_link_received_bytes_total", "Bytes received over one link (Blackwell and later).", "link"
)
LINK_TRANSMITTED_PACKETS = counter(
    "gpuwatch_gpu_nvlink_link_transmitted_packets_total", "Packets sent over one link (Blackwell and later).", "link"
)
LINK_RECEIVED_PACKETS = counter(
    "gpuwatch_gpu_nvlink_link_received_packets_total", "Packets received over one link (Blackwell and later).", "link"
)
LINK_RECOVERIES = counter(
    "gpuwatch_gpu_nvlink_link_recoveries_total",
    "Times that the link went down and was brought up again (successful), or was not (failed).",
    "link", "result",
)  # fmt: skip
LINK_BIT_ERRORS = gauge(
    "gpuwatch_gpu_nvlink_link_bit_error_ratio",
    "Bit error rate of one link: raw as received, effective after correction, symbol for whole symbols.",
    "link", "kind",
)  # fmt: skip
LINK_BLOCKS = counter(
    "gpuwatch_gpu_nvlink_link_retry_layer_blocks_total",
    "Blocks sent by the physical layer that repeats what was lost: first for those sent once, again for repeats.",
    "link", "sent",
)  # fmt: skip
FEC_BLOCKS = counter(
    "gpuwatch_gpu_nvlink_fec_blocks_total",
    "Blocks received over all links by how many of their symbols forward error correction had to mend, 0 to 15.",
    "mended",
)
