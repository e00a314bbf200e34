"""GPUs as NVIDIA's DCGM tells them, through the Python bindings that come with it. Nothing here opens a device."""

HELP = "serve the GPUs of a host that runs NVIDIA's DCGM"
