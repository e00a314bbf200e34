"""What the driver says must be done to bring a GPU back."""

from gpuwatch_exporters.device.family import gauge

ACTION = gauge(
    "gpuwatch_gpu_recovery_action",
    "The driver's number of what the GPU needs: 0 none, 1 GPU reset, 2 node reboot, 3 drain peers, 4 drain and reset, "
    "5 recover the IMEX domain, 6 bus reset, 7 system reboot.",
)
ACTION_INFO = gauge("gpuwatch_gpu_recovery_action_info", "The same in words; always 1, none included.", "action")
RESET_NEEDED = gauge("gpuwatch_gpu_reset_needed", "1 when the GPU works properly only after a reset or reboot.")
DRAIN_NEEDED = gauge("gpuwatch_gpu_drain_needed", "1 when no new work should be given to the GPU, before its reset.")
