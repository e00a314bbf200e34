"""Jobs: each task of an array and each component of a heterogeneous job counts as one."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

JOBS = gauge(
    "jobs", "Jobs that wait or hold nodes. A job sent to several partitions is under (several).", "partition", "state"
)
ENDED = gauge("jobs_ended", "Ended jobs that slurmctld still remembers (MinJobAge), by how they ended.", "state")
GPUS = gauge("jobs_gpus_allocated", "GPUs that jobs hold, as the jobs tell.", "partition", "gpu_type")
UNASKED = gauge(
    "jobs_gpus_unasked", "The part of the GPUs allocated to jobs that they did not ask for and got with a whole node.",
    "partition",
)  # fmt: skip
BY_SHAPE = gauge(
    "jobs_by_shape", "Jobs with GPUs by shape; gpus_per_node is the most on one node where they differ.",
    "state", "nodes", "gpus_per_node",
)  # fmt: skip
SECONDS_LEFT = gauge(
    "jobs_gpu_seconds_left", "GPUs that jobs hold times the seconds to their limit; jobs without one are left out.",
    "partition",
)  # fmt: skip
NO_LIMIT = gauge("jobs_without_time_limit", "Jobs with GPUs that tell no time limit of their own.", "state")
