"""What the counters of the chip tell over one cycle: Hopper and later, no rights needed."""

from gpuwatch_exporters.device.family import counter, gauge

GRAPHICS_ACTIVE = gauge(
    "gpuwatch_gpu_graphics_active_ratio", "Share of the cycle in which the compute and graphics engine worked."
)
SM_ACTIVE = gauge(
    "gpuwatch_gpu_sm_active_ratio", "Share of the cycle in which a multiprocessor had work, the average over all."
)
SM_OCCUPANCY = gauge(
    "gpuwatch_gpu_sm_occupancy_ratio", "Warps on the multiprocessors during the cycle, of as many as they could hold."
)
TENSOR_ACTIVE = gauge(
    "gpuwatch_gpu_tensor_active_ratio", "Share of the cycle in which the tensor pipes worked, the average over all."
)
TENSOR_PIPE_ACTIVE = gauge(
    "gpuwatch_gpu_tensor_pipe_active_ratio",
    "The same by kind of tensor instruction: hmma (floats of 16 bits and less), imma (integers), dmma, dfma (64 bits).",
    "pipe",
)
DRAM_ACTIVE = gauge(
    "gpuwatch_gpu_dram_active_ratio", "Memory bandwidth used in the cycle, of the most that the memory could give."
)
INTEGER_ACTIVE = gauge("gpuwatch_gpu_integer_active_ratio", "Share of the cycle in which the integer pipes worked.")
FP64_ACTIVE = gauge(
    "gpuwatch_gpu_fp64_active_ratio", "Share of the cycle in which the pipes of 64-bit floats worked, without tensor."
)
FP32_ACTIVE = gauge(
    "gpuwatch_gpu_fp32_active_ratio", "Share of the cycle in which the pipes of 32-bit floats worked, without tensor."
)
FP16_ACTIVE = gauge(
    "gpuwatch_gpu_fp16_active_ratio", "Share of the cycle in which the pipes of 16-bit floats worked, without tensor."
)
ENGINE_ACTIVE = gauge(
    "gpuwatch_gpu_media_engine_active_ratio",
    "Share of the cycle in which one engine worked: decoder, encoder, jpeg, ofa (optical flow), counted from 0.",
    "engine", "number",
)  # fmt: skip
CONTEXT_SWITCHING = gauge(
    "gpuwatch_gpu_context_switch_ratio",
    "Share of the cycle that a graphics engine spent on changing from one context to another: time-slicing's price.",
    "engine",
)
CACHE_HITS = gauge(
    "gpuwatch_gpu_cache_hit_ratio",
    "Accesses that the cache served in the cycle, by the memory they were for: host, peer, dram.",
    "memory",
)
PCIE_TRANSMIT = gauge(
    "gpuwatch_gpu_pcie_transmit_bytes_per_second", "Bytes that the GPU sent over PCIe, per second of the cycle."
)
PCIE_RECEIVE = gauge(
    "gpuwatch_gpu_pcie_receive_bytes_per_second", "Bytes that the GPU received over PCIe, per second of the cycle."
)
NVLINK_TRANSMIT = gauge(
    "gpuwatch_gpu_nvlink_transmit_bytes_per_second", "Bytes sent over all NVLinks, per second of the cycle."
)
NVLINK_RECEIVE = gauge(
    "gpuwatch_gpu_nvlink_receive_bytes_per_second", "Bytes received over all NVLinks, per second of the cycle."
)
NVLINK_LINK_TRANSMIT = gauge(
    "gpuwatch_gpu_nvlink_link_transmit_bytes_per_second", "Bytes sent over one NVLink, per second of the cycle.", "link"
)
NVLINK_LINK_RECEIVE = gauge(
    "gpuwatch_gpu_nvlink_link_receive_bytes_per_second",
    "Bytes received over one NVLink, per second of the cycle.",
    "link",
)
C2C_TRANSMIT = gauge(
    "gpuwatch_gpu_c2c_transmit_bytes_per_second",
    "Bytes sent over the links to the CPU's chip, per second of the cycle: data alone, or all with the protocol's own.",
    "traffic",
)
C2C_RECEIVE = gauge(
    "gpuwatch_gpu_c2c_receive_bytes_per_second",
    "Bytes received over the links to the CPU's chip, per second of the cycle: data alone, or all.",
    "traffic",
)
SM_CYCLES = counter(
    "gpuwatch_gpu_sm_cycles_total", "Clock cycles of the multiprocessors since the machine started (newest drivers)."
)
SM_ACTIVE_CYCLES = counter(
    "gpuwatch_gpu_sm_active_cycles_total", "Of those, cycles with work on a multiprocessor: of any length of window."
)
PIPE_CYCLES = counter(
    "gpuwatch_gpu_pipe_active_cycles_total",
    "Of those, cycles in which a pipe worked: tensor (any kind), hmma, imma, dmma, dfma, integer, fp64, fp32, fp16.",
    "pipe",
)
