"""Pods in the words of kube-state-metrics: one tuple of text blocks per pod, one block per family."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import DemandShape, Job, Member
from gpuwatch.model.units import MILLI
from gpuwatch_exporters.exposition import labels, number
from gpuwatch_exporters.replay.holders import CONTAINER, namespace_of
from gpuwatch_exporters.replay.products import sanitized


@dataclass(frozen=True, slots=True)
class Stamp:
    """Brings the dates of a source to the present: a trace from years ago is served as if it ended now."""

    deleted_seconds: int  # when the pods that are on their way out were told to go, in unix seconds
    shift_seconds: int = 0

    def seconds(self, at: datetime) -> int:
        """Unix seconds of `at`, shifted."""
        return round(at.timestamp()) + self.shift_seconds


# family -> HELP; all are gauges. The order is that of the blocks.
POD_FAMILIES: dict[str, str] = {
    "kube_pod_info": "Information about pod.",
    "kube_pod_created": "Unix creation timestamp",
    "kube_pod_start_time": "Start time in unix timestamp for a pod.",
    "kube_pod_owner": "Information about the Pod's owner.",
    "kube_pod_labels": "Kubernetes labels converted to Prometheus labels.",
    "kube_pod_nodeselectors": "Describes the Pod nodeSelectors.",
    "kube_pod_status_phase": "The pods current phase.",
    "kube_pod_status_scheduled": "Describes the status of the scheduling process for the pod.",
    "kube_pod_status_unschedulable": "Describes the unschedulable status for the pod.",
    "kube_pod_deletion_timestamp": "Unix deletion timestamp",
    "kube_pod_container_resource_requests": "The number of requested request resource by a container.",
}
_PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
_PHASE_OF = {"running": "Running", "pending": "Pending", "gated": "Pending", "finished": "Succeeded"}


def pod_blocks(job: Job, member: Member, node: Node | None, product: str | None, stamp: Stamp) -> tuple[str, ...]:
    """The lines of one pod, a block per family of POD_FAMILIES (empty where it has none).

    `node` is the one it stands on; `product` the one accepted product's label, when it asks for one.
    """
    namespace = namespace_of(job)
    key = labels((("namespace", namespace), ("pod", member.name), ("uid", pod_uid(namespace, member.name))))
    owner_kind, owner_name = owner_of(job)
    bound = member.node or ""
    placed = labels(
        (
            ("host_ip", ""),
            ("pod_ip", ""),
            ("node", bound),
            ("created_by_kind", owner_kind),
            ("created_by_name", owner_name),
            ("priority_class", "" if job.priority is None else f"priority-{job.priority}"),
            ("host_network", "false"),
        )
    )
    owner = labels(
        (
            ("owner_kind", owner_kind),
            ("owner_name", owner_name),
            ("owner_is_controller", "true" if owner_name != NO_OWNER else NO_OWNER),
        )
    )
    told: list[tuple[str, str]] = [("label_gpuwatch_io_kind", job.kind)] if job.kind != "unknown" else []
    told += [("label_gpuwatch_io_protected", "true")] if job.protected else []
    selects = [("nodeselector_gpuwatch_io_pool", job.pool)] if job.pool else []
    selects += [("nodeselector_nvidia_com_gpu_product", product)] if product else []
    phase = _PHASE_OF[job.phase]
    scheduled = "true" if bound else "false"
    waits = phase == "Pending" and not bound and job.phase != "gated"
    return (
        f"kube_pod_info{{{key},{placed}}} 1\n",
        _stamped("kube_pod_created", key, job.submitted_at or job.started_at, stamp),
        _stamped("kube_pod_start_time", key, job.started_at if bound else None, stamp),
        f"kube_pod_owner{{{key},{owner}}} 1\n",
        f"kube_pod_labels{{{key},{labels(told)}}} 1\n" if told else f"kube_pod_labels{{{key}}} 1\n",
        f"kube_pod_nodeselectors{{{key},{labels(selects)}}} 1\n" if selects else "",
        "".join(f'kube_pod_status_phase{{{key},phase="{name}"}} {int(name == phase)}\n' for name in _PHASES),
        "".join(
            f'kube_pod_status_scheduled{{{key},condition="{name}"}} {int(name == scheduled)}\n'
            for name in ("true", "false", "unknown")
        ),
        f"kube_pod_status_unschedulable{{{key}}} 1\n" if waits else "",
        f"kube_pod_deletion_timestamp{{{key}}} {stamp.deleted_seconds}\n" if member.terminating else "",
        _requests(key, bound, pod_requests(job, node)),
    )


NO_OWNER = "<none>"


def owner_of(job: Job) -> tuple[str, str]:
    """Kind and name of the controller; a Deployment's pods belong to its ReplicaSet."""
    kind, slash, name = (job.owner or "").partition("/")
    if not slash:
        return NO_OWNER, NO_OWNER
    if kind == "Deployment":
        return "ReplicaSet", f"{name}-{uuid5(NAMESPACE_URL, name).hex[:10]}"
    return kind, name


def pod_requests(job: Job, node: Node | None) -> list[tuple[str, str, str]]:
    """(resource, unit, amount) of one pod. Which GPU resource it is depends on the node: whole, shared, slice, share.

    An unbound fraction asks by thousandths, the only name that fits every node.
    """
    shape = job.shape
    asked = []
    if shape.mig_profile:
        asked.append((sanitized(f"nvidia.com/mig-{shape.mig_profile}"), "integer", str(shape.gpus)))
    elif shape.gpus and node is not None and (replicas := node_replicas(node)) > 1:
        shares = max(1, round(shape.milligpu_per_gpu * replicas / MILLI)) * shape.gpus
        asked.append(("nvidia_com_gpu_shared", "integer", str(shares)))
    elif shape.gpus and shape.milligpu_per_gpu == MILLI:
        asked.append(("nvidia_com_gpu", "integer", str(shape.gpus)))
    elif shape.gpus:
        asked.append(("alibabacloud_com_gpu_count", "integer", str(shape.gpus)))
        asked.append(("alibabacloud_com_gpu_milli", "integer", str(shape.milligpu_per_gpu)))
    if shape.cpu_millicores:
        asked.append(("cpu", "core", number(shape.cpu_millicores / MILLI)))
    if shape.memory_bytes:
        asked.append(("memory", "byte", str(shape.memory_bytes)))
    return asked


def node_replicas(node: Node) -> int:
    """Time-slicing shares per device; a node offers one number for all its devices."""
    return max((gpu.replicas for gpu in node.gpus), default=1)


def agent_blocks(node: Node, stamp: Stamp) -> tuple[str, ...]:
    """The node's CPU-only pods as one, when its snapshot says that such work holds CPU or memory."""
    job = Job(
        id=f"kube-system/agents-{node.name}",
        name="agents",
        owner="DaemonSet/agents",
        shape=DemandShape(
            gpus=0,
            cpu_millicores=node.other_cpu_requested_millicores,
            memory_bytes=node.other_memory_requested_bytes,
        ),
    )
    return pod_blocks(job, Member(name=f"agents-{node.name}", node=node.name), node, None, stamp)


def pod_uid(namespace: str, name: str) -> str:
    """One uid per pod name, the same in every run."""
    return str(uuid5(NAMESPACE_URL, f"pod/{namespace}/{name}"))


def _stamped(name: str, key: str, at: datetime | None, stamp: Stamp) -> str:
    return "" if at is None else f"{name}{{{key}}} {stamp.seconds(at)}\n"


def _requests(key: str, node: str, asked: list[tuple[str, str, str]]) -> str:
    where = labels((("container", CONTAINER), ("node", node)))
    return "".join(
        f'kube_pod_container_resource_requests{{{key},{where},resource="{resource}",unit="{unit}"}} {amount}\n'
        for resource, unit, amount in asked
    )
