"""GPUs by their type in Slurm: installed = allocated + shared + held + free + blocked + unknown, for each type."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

INSTALLED = gauge("gpus_installed", "GPUs that Slurm knows of.", "gpu_type")
ALLOCATED = gauge("gpus_allocated", "GPUs allocated to jobs, as the nodes tell.", "gpu_type")
SHARED = gauge(
    "gpus_shared", "GPUs of which shares (shard, mps) are allocated: they cannot be allocated as wholes.", "gpu_type"
)
HELD = gauge(
    "gpus_held", "GPUs not allocated, on nodes that a job has whole: nobody else gets them.", "gpu_type"
)  # fmt: skip
FREE = gauge("gpus_free", "GPUs not allocated, on nodes that take work.", "gpu_type")
BLOCKED = gauge("gpus_blocked", "GPUs not allocated, on nodes that take no work now.", "gpu_type", "condition")
UNKNOWN = gauge("gpus_unknown", "GPUs of nodes with jobs whose use of GPUs Slurm does not tell.", "gpu_type")
PROMISED = gauge("gpus_free_promised", "The part of the free GPUs on nodes planned for a waiting job.", "gpu_type")
STRANDED = gauge(
    "gpus_free_stranded", "The part of the free GPUs on nodes that have no free CPU, or no free memory, left.",
    "gpu_type", "cause",
)  # fmt: skip
BY_CONDITION = gauge(
    "gpus_by_node_condition", "GPUs installed, by the condition of their node.", "gpu_type", "condition"
)
GRES = gauge("gres_installed", "Other generic resources (shard, mps ...) installed.", "gres", "gres_type")
GRES_USED = gauge("gres_allocated", "Other generic resources (shard, mps ...) that jobs hold, of all types.", "gres")
