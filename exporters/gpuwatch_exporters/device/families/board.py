"""What the board is and how it is set up."""

from gpuwatch_exporters.device.family import gauge

BOARD_INFO = gauge(
    "gpuwatch_gpu_board_info",
    "Facts that do not change while the driver is loaded; an unknown one is empty; always 1.",
    "architecture", "compute_capability", "vbios_version", "part_number", "gsp_firmware_version", "inforom_version",
)  # fmt: skip
PLATFORM_INFO = gauge(
    "gpuwatch_gpu_platform_info",
    "Where the board sits in a rack system: chassis, slot, tray, host and module; always 1.",
    "chassis_serial", "slot", "tray", "host", "module",
)  # fmt: skip
CORES = gauge("gpuwatch_gpu_cores", "CUDA cores of the board.")
BUS_WIDTH = gauge("gpuwatch_gpu_memory_bus_width_bytes", "Bytes that the bus of the device memory carries at once.")
MAX_MIG = gauge("gpuwatch_gpu_mig_instances_max", "MIG instances that the board can hold at most.")
NUMA_NODE = gauge("gpuwatch_gpu_numa_node", "NUMA node of the device memory, where the host sees it as one.")
PERFORMANCE_STATE = gauge(
    "gpuwatch_gpu_performance_state", "P-state: 0 is full performance, higher numbers save power."
)
PERSISTENCE = gauge("gpuwatch_gpu_persistence_mode_enabled", "1 when the driver stays loaded without a client.")
COMPUTE_MODE_INFO = gauge(
    "gpuwatch_gpu_compute_mode_info",
    "Who may open the device: default, exclusive_process, prohibited; always 1.",
    "mode",
)
VIRTUALIZATION_INFO = gauge(
    "gpuwatch_gpu_virtualization_info", "How the device is virtualized (none on bare metal); always 1.", "mode"
)
ADDRESSING_INFO = gauge(
    "gpuwatch_gpu_addressing_info", "How host memory is addressed: none, hmm or ats; always 1.", "mode"
)
DISPLAY_ACTIVE = gauge("gpuwatch_gpu_display_active", "1 when a display is initialized on the device.")
DISPLAY_ATTACHED = gauge("gpuwatch_gpu_display_attached", "1 when a monitor is connected to the board.")
ACCOUNTING = gauge("gpuwatch_gpu_accounting_enabled", "1 when the driver keeps accounts of processes.")
AUTO_BOOST = gauge("gpuwatch_gpu_auto_boost_enabled", "1 when clocks rise by themselves where power and heat allow it.")
ENCRYPTION = gauge("gpuwatch_gpu_dram_encryption_enabled", "1 when device memory is encrypted.")
PROTECTED_MEMORY = gauge("gpuwatch_gpu_protected_memory_bytes", "Device memory for confidential computing.")
UNPROTECTED_MEMORY = gauge("gpuwatch_gpu_unprotected_memory_bytes", "Device memory outside confidential computing.")
VGPUS = gauge("gpuwatch_gpu_vgpus", "Virtual GPUs that run on the device; on vGPU hosts only.")
