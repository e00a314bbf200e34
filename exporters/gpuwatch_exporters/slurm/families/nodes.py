"""Nodes, each counted once though it stands in several partitions."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

NODES = gauge("nodes", "Nodes by condition, each under one: the first that fits in the page's order.", "condition")
BY_BASE = gauge("nodes_by_base_state", "Nodes by the base state that Slurm gives them.", "state")
FLAGGED = gauge("nodes_flagged", "Nodes that carry a flag of Slurm; a node may carry several.", "flag")
WITH_FREE = gauge(
    "nodes_with_free_gpus", "Nodes that take work, by type and number of their free GPUs (0 included).",
    "gpu_type", "gpus",
)  # fmt: skip
CPUS = gauge("cpus_installed", "CPUs of nodes with GPUs (nodes=gpu) and of the others (nodes=cpu).", "nodes")
CPUS_USED = gauge("cpus_allocated", "CPUs allocated to jobs.", "nodes")
CPUS_FREE = gauge("cpus_free", "CPUs not allocated, on nodes that take work.", "nodes")
MEMORY = gauge("memory_installed_bytes", "Memory that Slurm gives out.", "nodes")
MEMORY_USED = gauge("memory_allocated_bytes", "Memory allocated to jobs.", "nodes")
MEMORY_FREE = gauge("memory_free_bytes", "Memory not allocated, on nodes that take work.", "nodes")
