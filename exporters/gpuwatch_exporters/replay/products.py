"""Names as the cluster's API and its exporters spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuwatch.model.cluster import Node

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]")


def sanitized(name: str) -> str:
    """A resource or label name as kube-state-metrics prints it: "nvidia.com/gpu" -> "nvidia_com_gpu"."""
    return _NOT_ALLOWED.sub("_", name)


def product_label(product: str) -> str:
    """A product string as a node label value: "NVIDIA H100 80GB HBM3" -> "NVIDIA-H100-80GB-HBM3"."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", product.strip())


def product_labels(nodes: Iterable[Node]) -> dict[str, str]:
    """Catalogue id (or raw model) -> the product label that this cluster's nodes carry for it."""
    return {
        gpu.model: product_label(gpu.product or gpu.model)
        for node in nodes
        for gpu in node.gpus
        if gpu.model is not None
    }
