"""Single nodes, GPUs and jobs, each only where asked for."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

NODE_INFO = gauge("node_info", "A node with its condition; always 1 (only with --per-node).", "node", "condition")
NODE_GPUS = gauge("node_gpus_installed", "GPUs of the node (only with --per-node).", "node", "gpu_type")
NODE_USED = gauge(
    "node_gpus_allocated", "GPUs of the node allocated to jobs (only with --per-node).", "node", "gpu_type"
)
GPU_USED = gauge(
    "node_gpu_allocated", "1 where a job holds the GPU of this index (only with --per-gpu); absent where Slurm tells "
    "no indices.", "node", "gpu",
)  # fmt: skip
JOB_INFO = gauge(
    "job_info", "A job that waits or holds nodes; always 1 (only with --per-job).",
    "job_id", "account", "user", "partition", "state",
)  # fmt: skip
JOB_GPUS = gauge("job_gpus_allocated", "GPUs that the job holds (only with --per-job).", "job_id", "gpu_type")
JOB_ASKED = gauge("job_gpus_pending", "GPUs that the waiting job asks for (only with --per-job).", "job_id", "gpu_type")
DROPPED = gauge("series_left_out", "Series of single things left out because there were more than --max-series.")
