"""What was read from monitoring, in canonical words and units, before anybody joined it into a cluster.

Dialects write these values and assemble reads them; neither knows the other. Everything is as reported: duplicates,
contradictions and gaps are still in here, and `dropped` says how many samples no reader could use, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from gpuwatch.model.values import value

# now: the newest sample; the others describe one trailing window of `Observations.window_seconds`.
Statistic = Literal["now", "peak", "mean", "samples"]


@value
class Sample:
    """One series at one instant, as a monitoring system hands it over. Labels never hold the metric name."""

    metric: str
    labels: Mapping[str, str]
    value: float
    statistic: Statistic = "now"


@value
class ScrapeTarget:
    """One scraped endpoint, by the labels that the scraper adds."""

    job: str
    instance: str


@value
class Holder:
    """The pod that a device series names."""

    namespace: str
    pod: str


@value
class DeviceRef:
    """How a series names a device. Any part may be missing; assemble decides which device it is."""

    host: str | None = None
    uuid: str | None = None  # normalized: with its GPU- prefix, lower case hex
    uuid_text: str | None = None  # as the series spells it
    index: int | None = None
    mig_id: str | None = None
    mig_profile: str | None = None
    product: str | None = None


@value
class Reading:
    """One canonical field of one device. `field` is a field of model.cluster.Telemetry, or one of those in the docs
    page of the dialect (memory_free_bytes, memory_reserved_bytes, row_remap_failed, health_status)."""

    device: DeviceRef
    field: str
    value: float
    statistic: Statistic = "now"
    holder: Holder | None = None
    target: ScrapeTarget | None = None
    board: bool = False  # true of the whole board, even where `device` names one of its slices


@value
class TargetState:
    """Whether an endpoint answered its last scrape, and how many scrapes its window should hold."""

    target: ScrapeTarget
    up: bool | None = None
    scrapes: int | None = None
    host: str | None = None  # where the endpoint runs, when its labels say so


@value
class ContainerRequests:
    """What one container asks for: resource name as reported -> amount in the resource's base unit."""

    name: str
    amounts: Mapping[str, float]
    init: bool = False
    sidecar: bool = False  # an init container that keeps running beside the others


@value
class PodRecord:
    """One pod object. Two pods of one name have different uids."""

    namespace: str
    name: str
    uid: str = ""
    node: str | None = None
    phases: tuple[str, ...] = ()  # normally one; more when two readers of the API disagree
    containers: tuple[ContainerRequests, ...] = ()
    owner_kind: str | None = None
    owner_name: str | None = None
    priority_class: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)  # names as the exporter writes them, without "label_"
    selectors: Mapping[str, str] = field(default_factory=dict)
    deletion_requested: bool = False
    unschedulable: bool = False
    gated: bool = False
    created_seconds: float | None = None  # Unix time
    started_seconds: float | None = None


@value
class NodeRecord:
    """One node object of the cluster's API."""

    name: str
    capacity: Mapping[str, float] = field(default_factory=dict)
    allocatable: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)  # names as the exporter writes them, without "label_"
    ready: bool | None = None
    unschedulable: bool | None = None
    taints: tuple[tuple[str, str], ...] = ()  # (key, effect)
    internal_ip: str | None = None


@value
class Dropped:
    """Samples that could not be used: `reason` is sentinel, not_finite, out_of_range, or unknown_label."""

    metric: str
    reason: str
    count: int


@value
class Observations:
    """All that one read brought. `dialects` are those that recognized at least one sample."""

    readings: tuple[Reading, ...] = ()
    targets: tuple[TargetState, ...] = ()
    pods: tuple[PodRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    dialects: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()  # label spellings met, for people: "hostname", "exported_pod"
    metrics: tuple[str, ...] = ()  # known metric names met, sorted
    window_seconds: int | None = None


def merge(parts: Iterable[Observations], window_seconds: int | None = None) -> Observations:
    """One Observations of several, in their order."""
    every = list(parts)
    return Observations(
        readings=tuple(reading for part in every for reading in part.readings),
        targets=tuple(target for part in every for target in part.targets),
        pods=tuple(pod for part in every for pod in part.pods),
        nodes=tuple(node for part in every for node in part.nodes),
        dropped=tuple(drop for part in every for drop in part.dropped),
        dialects=tuple(sorted({name for part in every for name in part.dialects})),
        spellings=tuple(sorted({name for part in every for name in part.spellings})),
        metrics=tuple(sorted({name for part in every for name in part.metrics})),
        window_seconds=window_seconds,
    )
