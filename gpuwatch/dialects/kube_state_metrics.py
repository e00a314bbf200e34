"""The vocabulary of kube-state-metrics: pods, what they ask for, and nodes.

Pods are told apart by namespace, name and uid; repeated series (several replicas of the exporter or of the scraper)
describe the same object once more and change nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuwatch.dialects.dialect import DIALECTS
from gpuwatch.dialects.labels import MOVED, target_of, text_of
from gpuwatch.model.observations import ContainerRequests, Dropped, NodeRecord, Observations, PodRecord, Sample

_LABEL_PREFIX = "label_"
_AMOUNTS = frozenset(
    {
        "kube_pod_container_resource_requests",
        "kube_pod_init_container_resource_requests",
        "kube_node_status_capacity",
        "kube_node_status_allocatable",
    }
)
_COUNTED = re.compile(r"gpu(_shared|_count)?$|_mig_")
_MOST_COUNTED = 4096
_SELECTOR_PREFIX = "nodeselector_"


@dataclass(slots=True)
class _Pod:
    """A pod while it is being collected."""

    node: str | None = None
    phases: set[str] = field(default_factory=set)
    containers: dict[str, dict[str, float]] = field(default_factory=dict)
    inits: dict[str, dict[str, float]] = field(default_factory=dict)
    sidecars: set[str] = field(default_factory=set)
    owner: tuple[str | None, str | None] = (None, None)
    priority_class: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    selectors: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    times: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    """A node while it is being collected."""

    capacity: dict[str, float] = field(default_factory=dict)
    allocatable: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    ready: bool | None = None
    unschedulable: bool | None = None
    taints: set[tuple[str, str]] = field(default_factory=set)
    internal_ip: str | None = None


def _requests(containers: Callable[[_Pod], dict[str, dict[str, float]]]) -> Callable[[_Pod, Sample], None]:
    def read(pod: _Pod, sample: Sample) -> None:
        container, resource = text_of(sample.labels, "container"), text_of(sample.labels, "resource")
        if container and resource:
            amounts = containers(pod).setdefault(container, {})
            amounts[resource] = max(amounts.get(resource, 0.0), sample.value)
        pod.node = pod.node or text_of(sample.labels, "node")

    return read


def _info(pod: _Pod, sample: Sample) -> None:
    pod.node = text_of(sample.labels, "node") or pod.node
    pod.priority_class = text_of(sample.labels, "priority_class") or pod.priority_class
    if pod.owner == (None, None):
        pod.owner = (text_of(sample.labels, "created_by_kind"), text_of(sample.labels, "created_by_name"))


def _owner(pod: _Pod, sample: Sample) -> None:
    if text_of(sample.labels, "owner_is_controller") != "false":
        pod.owner = (text_of(sample.labels, "owner_kind"), text_of(sample.labels, "owner_name"))


def _phase(pod: _Pod, sample: Sample) -> None:
    if sample.value > 0 and (phase := text_of(sample.labels, "phase")):
        pod.phases.add(phase)


def _sidecar(pod: _Pod, sample: Sample) -> None:
    if text_of(sample.labels, "restart_policy") == "Always" and (name := text_of(sample.labels, "container")):
        pod.sidecars.add(name)


def _scheduled(pod: _Pod, sample: Sample) -> None:
    if sample.value > 0 and text_of(sample.labels, "condition") == "false":
        pod.flags.add("not_scheduled")


def _reason(pod: _Pod, sample: Sample) -> None:
    if sample.value > 0 and text_of(sample.labels, "reason") == "SchedulingGated":
        pod.flags.add("gated")


def _flag(name: str, always: bool = False) -> Callable[[_Pod, Sample], None]:
    def read(pod: _Pod, sample: Sample) -> None:
        if always or sample.value > 0:
            pod.flags.add(name)

    return read


def _time(name: str) -> Callable[[_Pod, Sample], None]:
    def read(pod: _Pod, sample: Sample) -> None:
        pod.times[name] = sample.value

    return read


def _prefixed(prefix: str, into: Callable[[_Pod], dict[str, str]]) -> Callable[[_Pod, Sample], None]:
    def read(pod: _Pod, sample: Sample) -> None:
        into(pod).update(_without_prefix(sample.labels, prefix))

    return read


POD_TABLE: dict[str, Callable[[_Pod, Sample], None]] = {
    "kube_pod_container_resource_requests": _requests(lambda pod: pod.containers),
    "kube_pod_init_container_resource_requests": _requests(lambda pod: pod.inits),
    "kube_pod_init_container_info": _sidecar,
    "kube_pod_info": _info,
    "kube_pod_owner": _owner,
    "kube_pod_labels": _prefixed(_LABEL_PREFIX, lambda pod: pod.labels),
    "kube_pod_nodeselectors": _prefixed(_SELECTOR_PREFIX, lambda pod: pod.selectors),
    "kube_pod_status_phase": _phase,
    "kube_pod_status_scheduled": _scheduled,
    "kube_pod_status_unschedulable": _flag("unschedulable"),
    "kube_pod_status_reason": _reason,
    "kube_pod_deletion_timestamp": _flag("deletion", always=True),
    "kube_pod_created": _time("created"),
    "kube_pod_start_time": _time("started"),
}


def _amount(which: Callable[[_Node], dict[str, float]]) -> Callable[[_Node, Sample], None]:
    def read(node: _Node, sample: Sample) -> None:
        if resource := text_of(sample.labels, "resource"):
            which(node)[resource] = max(which(node).get(resource, 0.0), sample.value)

    return read


def _node_labels(node: _Node, sample: Sample) -> None:
    node.labels.update(_without_prefix(sample.labels, _LABEL_PREFIX))


def _node_info(node: _Node, sample: Sample) -> None:
    node.internal_ip = text_of(sample.labels, "internal_ip") or node.internal_ip


def _condition(node: _Node, sample: Sample) -> None:
    # Replicas that disagree: not ready wins, work is sent there on a ready answer only.
    if sample.value > 0 and text_of(sample.labels, "condition") == "Ready":
        node.ready = text_of(sample.labels, "status") == "true" and node.ready is not False


def _node_unschedulable(node: _Node, sample: Sample) -> None:
    node.unschedulable = bool(node.unschedulable) or sample.value > 0


def _taint(node: _Node, sample: Sample) -> None:
    key, effect = text_of(sample.labels, "key"), text_of(sample.labels, "effect")
    if sample.value > 0 and key and effect:
        node.taints.add((key, effect))


NODE_TABLE: dict[str, Callable[[_Node, Sample], None]] = {
    "kube_node_info": _node_info,
    "kube_node_labels": _node_labels,
    "kube_node_status_capacity": _amount(lambda node: node.capacity),
    "kube_node_status_allocatable": _amount(lambda node: node.allocatable),
    "kube_node_status_condition": _condition,
    "kube_node_spec_unschedulable": _node_unschedulable,
    "kube_node_spec_taint": _taint,
}


@dataclass(frozen=True)
class KubeStateMetricsDialect:
    """See the module."""

    metrics: frozenset[str] = frozenset(POD_TABLE) | frozenset(NODE_TABLE)

    def read(self, samples: Sequence[Sample]) -> Observations:
        pods: dict[tuple[str, str, str], _Pod] = {}
        nodes: dict[str, _Node] = {}
        dropped: Counter[tuple[str, str]] = Counter()
        spellings: set[str] = set()
        for sample in _own_nodes(samples):
            if not math.isfinite(sample.value):
                dropped[sample.metric, "not_finite"] += 1
                continue
            if sample.metric in _AMOUNTS and not 0 <= sample.value <= _most(sample):
                dropped[sample.metric, "out_of_range"] += 1
                continue
            if sample.metric in NODE_TABLE:
                if name := text_of(sample.labels, "node"):
                    NODE_TABLE[sample.metric](nodes.setdefault(name, _Node()), sample)
                else:
                    dropped[sample.metric, "unknown_label"] += 1
            elif key := _pod_key(sample.labels):
                POD_TABLE[sample.metric](pods.setdefault(key, _Pod()), sample)
                spellings.update({"exported_pod"} & sample.labels.keys())
            else:
                dropped[sample.metric, "unknown_label"] += 1
        return Observations(
            pods=tuple(_pod_record(key, pod) for key, pod in sorted(pods.items())),
            nodes=tuple(_node_record(name, node) for name, node in sorted(nodes.items())),
            dropped=tuple(Dropped(metric=m, reason=r, count=n) for (m, r), n in sorted(dropped.items())),
            spellings=tuple(sorted(spellings)),
        )


def _most(sample: Sample) -> float:
    """More than this of a resource is a fault: counted things become values one by one."""
    resource = text_of(sample.labels, "resource") or ""
    return _MOST_COUNTED if _COUNTED.search(resource) else 2.0**53


def _own_nodes(samples: Sequence[Sample]) -> Iterator[Sample]:
    """The samples, without the `node` labels that speak of the exporter's own machine: where the scraper moves labels
    aside, an unbound pod has no moved one and would seem to stand there."""
    moved = {target_of(sample.labels) for sample in samples if MOVED + "node" in sample.labels}
    for sample in samples:
        plain = moved and "node" in sample.labels and MOVED + "node" not in sample.labels
        if plain and target_of(sample.labels) in moved:
            yield replace(sample, labels={name: text for name, text in sample.labels.items() if name != "node"})
        else:
            yield sample


def _pod_key(labels: Mapping[str, str]) -> tuple[str, str, str] | None:
    namespace, name = text_of(labels, "namespace"), text_of(labels, "pod")
    return (namespace, name, text_of(labels, "uid") or "") if namespace and name else None


def _without_prefix(labels: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in labels.items() if name.startswith(prefix)}


def _pod_record(key: tuple[str, str, str], pod: _Pod) -> PodRecord:
    apps = [ContainerRequests(name=name, amounts=amounts) for name, amounts in sorted(pod.containers.items())]
    inits = [
        ContainerRequests(name=name, amounts=amounts, init=True, sidecar=name in pod.sidecars)
        for name, amounts in sorted(pod.inits.items())
    ]
    namespace, name, uid = key
    owner_kind, owner_name = pod.owner
    unschedulable = "unschedulable" in pod.flags
    # The exporter has no series for gates. A pod that the scheduler turned away is marked unschedulable; one that is
    # kept from the scheduler is not scheduled and not marked.
    gated = "gated" in pod.flags or ("not_scheduled" in pod.flags and not unschedulable)
    # A pod that is not scheduled stands nowhere, whatever machine the scraper's own labels name.
    node = None if "not_scheduled" in pod.flags else pod.node
    return PodRecord(
        namespace=namespace,
        name=name,
        uid=uid,
        node=node,
        phases=tuple(sorted(pod.phases)),
        containers=(*apps, *inits),
        owner_kind=_known(owner_kind),
        owner_name=_known(owner_name),
        priority_class=pod.priority_class,
        labels=dict(sorted(pod.labels.items())),
        selectors=dict(sorted(pod.selectors.items())),
        deletion_requested="deletion" in pod.flags,
        unschedulable=unschedulable,
        gated=gated,
        created_seconds=pod.times.get("created"),
        started_seconds=pod.times.get("started"),
    )


def _known(text: str | None) -> str | None:
    return None if text in (None, "", "<none>") else text


def _node_record(name: str, node: _Node) -> NodeRecord:
    return NodeRecord(
        name=name,
        capacity=dict(sorted(node.capacity.items())),
        allocatable=dict(sorted(node.allocatable.items())),
        labels=dict(sorted(node.labels.items())),
        ready=node.ready,
        unschedulable=node.unschedulable,
        taints=tuple(sorted(node.taints)),
        internal_ip=node.internal_ip,
    )


DIALECTS.register("kube_state_metrics")(KubeStateMetricsDialect())
