"""Links between the GPU and the CPU's chip (C2C: Grace Hopper, Grace Blackwell)."""

from gpuwatch_exporters.device.family import counter, gauge

ENABLED = gauge(
    "gpuwatch_gpu_c2c_enabled", "1 when the GPU is joined to its CPU by C2C, 0 when it could be and is not."
)
LINKS = gauge("gpuwatch_gpu_c2c_links", "C2C links that the GPU has.")
LINK_UP = gauge("gpuwatch_gpu_c2c_link_up", "1 when the C2C link is active, 0 when it is not.", "link")
LINK_SPEED = gauge("gpuwatch_gpu_c2c_link_speed_bytes_per_second", "What the C2C link can carry.", "link")
LINK_LOW_POWER = gauge("gpuwatch_gpu_c2c_link_low_power", "1 while the C2C link is in its low power state.", "link")
LINK_ERRORS = counter(
    "gpuwatch_gpu_c2c_link_errors_total",
    "Errors of a C2C link: interrupt, replay, replay_back_to_back (a replay right after another).",
    "link", "kind",
)  # fmt: skip
