"""Nodes in the words of kube-state-metrics."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address
from uuid import NAMESPACE_URL, uuid5

from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.units import MIB, MILLI
from gpuwatch_exporters.exposition import labels, number
from gpuwatch_exporters.replay.kube_pods import node_replicas
from gpuwatch_exporters.replay.products import product_label, sanitized

NODE_FAMILIES: dict[str, str] = {
    "kube_node_info": "Information about a cluster node.",
    "kube_node_labels": "Kubernetes labels converted to Prometheus labels.",
    "kube_node_spec_unschedulable": "Whether a node can schedule new pods.",
    "kube_node_spec_taint": "The taint of a cluster node.",
    "kube_node_status_condition": "The condition of a cluster node.",
    "kube_node_status_capacity": "The total amount of resources available for a node.",
    "kube_node_status_allocatable": "The amount of resources allocatable for pods.",
}
_MAX_PODS = 110
# Why a node takes no work -> the taints that say so.
_TAINTS: dict[str, tuple[tuple[str, str], ...]] = {
    "cordoned": (("node.kubernetes.io/unschedulable", "NoSchedule"),),
    "not_ready": (("node.kubernetes.io/not-ready", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute")),
    "powered_down": (("node.kubernetes.io/unreachable", "NoSchedule"),),
    "maintenance": (("gpuwatch.io/maintenance", "NoSchedule"),),
    "reserved": (("gpuwatch.io/reserved", "NoSchedule"),),
    "tainted": (("gpuwatch.io/dedicated", "NoSchedule"),),
}
# Faults that the device plugin sees by itself and takes out of the allocatable count. It watches driver events: a
# failed row remap is no such event, and that device goes on being offered.
_SEEN_BY_PLUGIN = "xid_"


def node_blocks(node: Node, position: int) -> tuple[str, ...]:
    """The lines of one node, a block per family of NODE_FAMILIES."""
    key = labels((("node", node.name),))
    down = {"not_ready", "powered_down"} & set(node.block_causes)
    taints = [taint for cause in node.block_causes for taint in _TAINTS.get(cause, _TAINTS["tainted"])]
    return (
        f"kube_node_info{{{key},{_info(node, position)}}} 1\n",
        f"kube_node_labels{{{key},{_labels(node)}}} 1\n",
        f"kube_node_spec_unschedulable{{{key}}} {int('cordoned' in node.block_causes)}\n",
        "".join(
            f'kube_node_spec_taint{{{key},key="{name}",value="",effect="{effect}"}} 1\n' for name, effect in taints
        ),
        "".join(_condition(key, name, bool(down)) for name in ("Ready", "MemoryPressure", "DiskPressure")),
        _amounts("kube_node_status_capacity", key, node, counting=()),
        _amounts("kube_node_status_allocatable", key, node, counting=(_SEEN_BY_PLUGIN,)),
    )


def _info(node: Node, position: int) -> str:
    return labels(
        (
            ("kernel_version", "6.8.0"),
            ("os_image", "Ubuntu 24.04 LTS"),
            ("container_runtime_version", "containerd://2.0.5"),
            ("kubelet_version", "v1.33.1"),
            ("kubeproxy_version", "deprecated"),
            ("provider_id", ""),
            ("pod_cidr", ""),
            ("system_uuid", str(uuid5(NAMESPACE_URL, f"node/{node.name}"))),
            ("internal_ip", str(IPv4Address("10.64.0.10") + position)),
        )
    )


def _labels(node: Node) -> str:
    told = [("label_kubernetes_io_hostname", node.name), ("label_gpuwatch_io_pool", node.pool)]
    if node.gpus:
        first = node.gpus[0]
        memory = next((gpu.memory_total_bytes for gpu in node.gpus if gpu.memory_total_bytes), None)
        told.append(("label_nvidia_com_gpu_count", str(len(node.gpus))))
        told.append(("label_nvidia_com_gpu_replicas", str(node_replicas(node))))
        if first.product or first.model:
            told.append(("label_nvidia_com_gpu_product", product_label(first.product or first.model or "")))
        if memory:
            told.append(("label_nvidia_com_gpu_memory", str(memory // MIB)))
        if any(gpu.mig_enabled for gpu in node.gpus):
            told += [("label_nvidia_com_mig_strategy", "mixed"), ("label_nvidia_com_mig_capable", "true")]
    told += [(f"label_{sanitized(name)}", text) for name, text in sorted(node.labels.items())]
    return labels(dict(told).items())


def _condition(key: str, name: str, down: bool) -> str:
    holds = ("false" if down else "true") if name == "Ready" else "false"
    return "".join(
        f'kube_node_status_condition{{{key},condition="{name}",status="{status}"}} {int(status == holds)}\n'
        for status in ("true", "false", "unknown")
    )


def _amounts(family: str, key: str, node: Node, counting: tuple[str, ...]) -> str:
    """`counting`: prefixes of health causes that take a device out of the count."""
    amounts = [("pods", "integer", str(_MAX_PODS))]
    if node.cpu_allocatable_millicores is not None:
        amounts.append(("cpu", "core", number(node.cpu_allocatable_millicores / MILLI)))
    if node.memory_allocatable_bytes is not None:
        amounts.append(("memory", "byte", str(node.memory_allocatable_bytes)))
    offered = [gpu for gpu in node.gpus if not any(cause.startswith(counting) for cause in gpu.health_causes)]
    amounts += [(name, "integer", str(count)) for name, count in gpu_amounts(node, offered).items()]
    return "".join(
        f'{family}{{{key},resource="{resource}",unit="{unit}"}} {amount}\n' for resource, unit, amount in amounts
    )


def gpu_amounts(node: Node, offered: list[Gpu]) -> dict[str, int]:
    """What the device plugin offers for these devices: whole ones or replicas of them, and slices by profile.

    A resource that the node has at all is listed with 0 when none of its devices is offered.
    """
    replicas = node_replicas(node)
    name = "nvidia_com_gpu_shared" if replicas > 1 else "nvidia_com_gpu"
    amounts: Counter[str] = Counter({name: 0} if node.gpus else {})
    for gpu in offered:
        if gpu.mig_enabled:
            amounts.update(sanitized(f"nvidia.com/mig-{part.profile}") for part in gpu.mig_instances)
        else:
            amounts[name] += replicas
    return dict(amounts)
