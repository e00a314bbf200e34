"""What stands in the cluster: devices, slices, nodes. Values only; None always travels with a reason."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpuwatch.model.values import value

Health = Literal["healthy", "unhealthy", "unknown"]

UNKNOWN_MODEL = "unknown"  # how a scope of devices whose model nobody tells is called

# Why a node's free devices cannot be scheduled, in the order in which one cause is charged when several hold.
BLOCK_CAUSES = ("not_ready", "powered_down", "maintenance", "cordoned", "tainted", "reserved")


@value
class Telemetry:
    """One instant's readings of a device or slice. A field is None when not observed; `missing` says why."""

    utilization_ratio: float | None = None  # time with a kernel running, 0..1
    engine_active_ratio: float | None = None  # graphics/compute engine or SM activity, 0..1
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: float | None = None
    xid: int | None = None  # code of a recent driver event, when one was seen
    missing: dict[str, str] = field(default_factory=dict)  # field name -> reason code


@value
class Activity:
    """What was measured over one trailing window that ends at the snapshot's `taken_at`."""

    window_seconds: int
    samples: int  # seen
    samples_expected: int
    peak_ratio: float | None = None  # peak of the best activity signal, 0..1; None when no sample was usable
    mean_ratio: float | None = None
    peak_memory_used_bytes: int | None = None
    mean_power_watts: float | None = None
    signal: str = "none"  # engine_active | utilization | none


@value
class MigInstance:
    """One created slice of a device in MIG mode."""

    id: str  # GPU instance id, unique on its device
    profile: str  # for example 1g.10gb
    compute_slices: int  # of 7 on most cards
    memory_slices: int  # of 8 on most cards
    placement_start: int | None = None
    uuid: str | None = None
    telemetry: Telemetry | None = None
    activity: Activity | None = None


@value
class Gpu:
    """One physical device."""

    index: int  # position on its node, 0-based, unique there
    uuid: str | None = None
    uuid_spellings: tuple[str, ...] = ()  # how its series write it, where that is not how it stands above
    model: str | None = None  # catalogue id, else the product string as read; None when nobody says
    product: str | None = None  # the product string as read
    memory_total_bytes: int | None = None
    health: Health = "unknown"
    health_causes: tuple[str, ...] = ()  # for example xid_79, row_remap_failed, lost
    replicas: int = 1  # time-slicing or MPS shares offered for this device
    mig_enabled: bool = False
    mig_instances: tuple[MigInstance, ...] = ()
    telemetry: Telemetry | None = None
    telemetry_reason: str | None = None  # why telemetry is None: no_series, exporter_down, not_collected, lost
    activity: Activity | None = None
    activity_reason: str | None = None


@value
class Node:
    """One machine. A CPU-only machine has no gpus."""

    name: str
    pool: str = "default"
    gpus: tuple[Gpu, ...] = ()
    cpu_allocatable_millicores: int | None = None
    memory_allocatable_bytes: int | None = None
    other_cpu_requested_millicores: int = 0  # held by workloads that are not listed as jobs (no GPU)
    other_memory_requested_bytes: int = 0
    block_causes: tuple[str, ...] = ()  # from BLOCK_CAUSES; free devices here are blocked, busy ones stay allocated
    nvlink_domain: str | None = None  # None: the node is its own domain
    labels: dict[str, str] = field(default_factory=dict)  # only those that a rule or a person reads
