"""What waits, since when and why."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

JOBS = gauge("pending_jobs", "Waiting jobs by Slurm's reason.", "reason")
GPUS = gauge("pending_gpus", "GPUs that waiting jobs ask for, by Slurm's reason.", "reason", "gpu_type")
BY_PARTITION = gauge("partition_pending_gpus", "GPUs that waiting jobs ask for.", "partition", "gpu_type")
OLDEST = gauge("pending_oldest_age_seconds", "Time since the oldest waiting job was sent.", "partition")
OLDEST_ELIGIBLE = gauge(
    "pending_oldest_eligible_age_seconds",
    "Time since the oldest waiting job could have started: no dependency, no later begin held it.", "partition",
)  # fmt: skip
GPU_SECONDS = gauge(
    "pending_gpu_seconds", "GPUs times time limit that waiting jobs ask for; jobs without a time limit are left out.",
    "partition",
)  # fmt: skip
