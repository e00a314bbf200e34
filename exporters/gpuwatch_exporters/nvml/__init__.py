"""The NVML exporter: reads the GPUs of one node through NVIDIA's management library, from nvidia-ml-py alone."""

HELP = "serve the GPUs of this node, read through NVML"
