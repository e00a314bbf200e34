"""The link to the host."""

from gpuwatch_exporters.device.family import counter, gauge

GENERATION = gauge(
    "gpuwatch_gpu_pcie_link_generation", "PCIe generation of the link now; it falls while the GPU is idle."
)
GENERATION_MAX = gauge("gpuwatch_gpu_pcie_link_generation_max", "Highest generation that GPU and slot allow together.")
GENERATION_GPU_MAX = gauge("gpuwatch_gpu_pcie_generation_max", "Highest PCIe generation of the GPU alone.")
WIDTH = gauge("gpuwatch_gpu_pcie_link_width", "Lanes of the link now.")
WIDTH_MAX = gauge("gpuwatch_gpu_pcie_link_width_max", "Lanes that GPU and slot allow together.")
REPLAYS = counter("gpuwatch_gpu_pcie_replays_total", "Packets sent again because the other side did not confirm them.")
REPLAY_ROLLOVERS = counter(
    "gpuwatch_gpu_pcie_replay_rollovers_total", "Packets that were sent again in vain four times."
)
RECOVERIES = counter("gpuwatch_gpu_pcie_recoveries_total", "Times that the link left its normal state to recover.")
TRANSMITTED = counter("gpuwatch_gpu_pcie_transmitted_bytes_total", "Bytes from the GPU to the host.")
RECEIVED = counter("gpuwatch_gpu_pcie_received_bytes_total", "Bytes from the host to the GPU.")
ERRORS = counter(
    "gpuwatch_gpu_pcie_errors_total",
    "Errors of the link by kind, as the bus counts them: correctable, fatal, non_fatal, bad_tlp ...",
    "kind",
)
NAKS = counter(
    "gpuwatch_gpu_pcie_naks_total", "Packets refused by either side, by direction of the refusal.", "direction"
)
