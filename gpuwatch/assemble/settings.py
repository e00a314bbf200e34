"""What a site may tell assemble about its own labels and names."""

from __future__ import annotations

from dataclasses import field

from gpuwatch.model.values import value


@value
class AssembleSettings:
    """Label names are written as kube-state-metrics prints them: every character but letters, digits and _ is a _."""

    pool_labels: tuple[str, ...] = (
        "gpuwatch_io_pool",
        "cloud_google_com_gke_nodepool",
        "eks_amazonaws_com_nodegroup",
        "kubernetes_azure_com_agentpool",
        "agentpool",
    )
    kind_labels: tuple[str, ...] = ("gpuwatch_io_kind",)
    protect_labels: tuple[str, ...] = ("gpuwatch_io_protected", "karpenter_sh_do_not_disrupt")
    priority_by_class: dict[str, int] = field(
        default_factory=lambda: {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
    )
    # Taints that GPU nodes carry only to keep CPU work away; pods that ask for a GPU tolerate them.
    harmless_taints: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu", "gpuwatch.io/gpu", "sku", "workload")
    fatal_xids: tuple[int, ...] = (48, 62, 64, 74, 79, 95, 119, 120)
