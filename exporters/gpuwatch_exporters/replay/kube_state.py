"""The kube-state-metrics page: blocks per pod and node, kept between renderings so that only changes are printed."""

from __future__ import annotations

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import Job
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch_exporters.exposition import family
from gpuwatch_exporters.replay.kube_nodes import NODE_FAMILIES, node_blocks
from gpuwatch_exporters.replay.kube_pods import POD_FAMILIES, Stamp, agent_blocks, pod_blocks
from gpuwatch_exporters.replay.products import product_labels

Blocks = tuple[str, ...]


class KubeStatePage:
    """Renders pages of one cluster, one after the other."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Job, int, list[Blocks]]] = {}

    def render(self, snapshot: ClusterSnapshot, nodes: tuple[Node, ...], stamp: Stamp) -> str:
        """The page of `snapshot` for `nodes` (all of its nodes, or the first of them with their pods only)."""
        by_name = {node.name: node for node in nodes}
        products = product_labels(snapshot.nodes)
        pods: list[Blocks] = []
        kept: dict[str, tuple[Job, int, list[Blocks]]] = {}
        for job in snapshot.jobs:
            known = self._kept.get(job.id)
            if known is None or known[1] != stamp.shift_seconds or (known[0] is not job and known[0] != job):
                known = (job, stamp.shift_seconds, _blocks(job, by_name, products, stamp))
            kept[job.id] = known
            pods += known[2]
        self._kept = kept
        pods += [agent_blocks(node, stamp) for node in nodes if _has_agents(node)]
        parts = [node_blocks(node, position) for position, node in enumerate(nodes)]
        return _joined(NODE_FAMILIES, parts) + _joined(POD_FAMILIES, pods)


def _blocks(job: Job, nodes: dict[str, Node], products: dict[str, str], stamp: Stamp) -> list[Blocks]:
    models = job.shape.gpu_models
    product = products.get(models[0], models[0]) if len(models) == 1 else None
    return [
        pod_blocks(job, member, nodes.get(member.node or ""), product, stamp)
        for member in job.members
        if member.node is None or member.node in nodes
    ]


def _has_agents(node: Node) -> bool:
    return bool(node.other_cpu_requested_millicores or node.other_memory_requested_bytes)


def _joined(families: dict[str, str], parts: list[Blocks]) -> str:
    out = []
    for (name, told), blocks in zip(families.items(), zip(*parts, strict=True), strict=False):
        body = "".join(blocks)
        if body:
            out.append(family(name, "gauge", told) + body)
    return "".join(out)
