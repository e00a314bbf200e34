"""One node: pool, block causes, CPU and memory, and its GPUs."""

from __future__ import annotations

from gpuwatch.assemble.devices import Device
from gpuwatch.assemble.gpus import Measured, gpus_of
from gpuwatch.assemble.offer import Offer
from gpuwatch.assemble.resources import CPU, MEMORY
from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.model.cluster import BLOCK_CAUSES, Node
from gpuwatch.model.observations import NodeRecord
from gpuwatch.model.snapshot import Finding
from gpuwatch.model.units import MILLI

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
_TAINT_CAUSES = {
    "node.kubernetes.io/not-ready": "not_ready",
    "node.kubernetes.io/unreachable": "not_ready",
    "node.kubernetes.io/unschedulable": "cordoned",
    "ToBeDeletedByClusterAutoscaler": "maintenance",
    "node.kubernetes.io/out-of-service": "maintenance",
    "gpuwatch.io/maintenance": "maintenance",
    "gpuwatch.io/reserved": "reserved",
}
_KEPT_LABELS = (
    "nvidia_com_gpu_product",
    "nvidia_com_mig_config_state",
    "node_kubernetes_io_instance_type",
    "topology_kubernetes_io_zone",
)


def node_of(
    name: str,
    record: NodeRecord | None,
    devices: list[Device],
    offer: Offer,
    held: set[int],
    other: tuple[int, int],
    measured: Measured,
    settings: AssembleSettings,
    *,
    scheduler_known: bool,
) -> tuple[Node, list[Finding]]:
    """Builds one node. `other`: millicores and bytes that pods without a GPU hold there.

    `scheduler_known`: some node objects were read, so that a machine without one takes no work.
    """
    gpus, findings = gpus_of(name, devices, offer, held, measured, settings)
    causes = _block_causes(record, settings) if record else set()
    if record is None and scheduler_known and gpus:
        causes.add("not_ready")
        detail = "its GPUs are seen, but the cluster's API has no such node; free ones count as blocked"
        findings.append(Finding(code="host_without_node", severity="warning", subject=name, detail=detail))
    elif record is not None and gpus and not offer.offered and record.capacity:
        causes.add("reserved")
        detail = "its GPUs are offered to nobody through a device plugin; free ones count as blocked"
        findings.append(Finding(code="gpus_not_offered", severity="warning", subject=name, detail=detail))
    labels = record.labels if record else {}
    cpu, memory = (record.allocatable.get(key) if record else None for key in (CPU, MEMORY))
    return Node(
        name=name,
        pool=next((labels[key] for key in settings.pool_labels if labels.get(key)), "default"),
        gpus=gpus,
        cpu_allocatable_millicores=None if cpu is None else round(cpu * MILLI),
        memory_allocatable_bytes=None if memory is None else round(memory),
        other_cpu_requested_millicores=other[0],
        other_memory_requested_bytes=other[1],
        block_causes=tuple(cause for cause in BLOCK_CAUSES if cause in causes),
        nvlink_domain=labels.get("nvidia_com_gpu_clique") or None,
        labels={key: labels[key] for key in _KEPT_LABELS if labels.get(key)},
    ), findings


def _block_causes(record: NodeRecord, settings: AssembleSettings) -> set[str]:
    causes = set()
    if record.ready is False:
        causes.add("not_ready")
    if record.unschedulable:
        causes.add("cordoned")
    for key, effect in record.taints:
        if effect in _BLOCKING_EFFECTS and key not in settings.harmless_taints:
            causes.add(_TAINT_CAUSES.get(key, "tainted"))
    return causes
