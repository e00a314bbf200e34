"""Partitions. Nodes may stand in several: sums over partitions count them several times."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

INFO = gauge("partition_info", "A partition; always 1.", "partition", "state", "oversubscribe")
UP = gauge("partition_up", "1 where the partition is up: it takes jobs and starts them.", "partition")
NODES = gauge("partition_nodes", "Nodes of the partition.", "partition")
GPUS = gauge("partition_gpus_installed", "GPUs of the partition's nodes.", "partition", "gpu_type")
GPUS_ALLOCATED = gauge(
    "partition_gpus_allocated", "GPUs of the partition's nodes allocated to jobs of any partition.",
    "partition", "gpu_type",
)  # fmt: skip
GPUS_FREE = gauge(
    "partition_gpus_free", "GPUs not allocated or held, on the partition's nodes that take work.",
    "partition", "gpu_type",
)  # fmt: skip
MAX_TIME = gauge("partition_max_time_seconds", "Longest time limit of a job; absent where there is none.", "partition")
MAX_NODES = gauge("partition_max_nodes_per_job", "Most nodes of a job; absent where there is no limit.", "partition")
TIER = gauge("partition_priority_tier", "Priority tier: jobs of a higher one are placed first.", "partition")
