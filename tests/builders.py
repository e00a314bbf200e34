"""Short ways to build model values in tests. Every default is the plainest legal value."""

from __future__ import annotations

from datetime import UTC, datetime

from gpuwatch.model.cluster import Activity, Gpu, Node, Telemetry
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday


def a_gpu(index: int = 0, model: str = "H100-80", **fields) -> Gpu:
    fields.setdefault("uuid", f"GPU-{model}-{index}")
    fields.setdefault("health", "healthy")
    return Gpu(index=index, model=model, **fields)


def a_node(name: str = "n1", gpus: int | list[Gpu] = 8, model: str = "H100-80", **fields) -> Node:
    """A node with `gpus` equal devices (or the given ones), 12 CPUs and 100 GiB a device unless told otherwise."""
    devices = (
        tuple(a_gpu(i, model, uuid=f"GPU-{name}-{i}") for i in range(gpus)) if isinstance(gpus, int) else tuple(gpus)
    )
    fields.setdefault("cpu_allocatable_millicores", 12_000 * max(1, len(devices)))
    fields.setdefault("memory_allocatable_bytes", 100 * 2**30 * max(1, len(devices)))
    return Node(name=name, gpus=devices, **fields)


def a_shape(gpus: int = 1, milligpu: int = 1000, cpu: int = 4000, **fields) -> DemandShape:
    return DemandShape(gpus=gpus, milligpu_per_gpu=milligpu, cpu_millicores=cpu, **fields)


def a_job(
    name: str = "j1",
    node: str | None = None,
    devices: list[int] | None = None,
    shape: DemandShape | None = None,
    **fields,
) -> Job:
    """A one-member job in namespace "ml"; bound when `node` is given, to `devices` when these are given too."""
    shape = shape or a_shape(gpus=len(devices) if devices else 1)
    shares = tuple(DeviceShare(gpu_index=i, milligpu=shape.milligpu_per_gpu) for i in devices or ())
    fields.setdefault("phase", "running" if node else "pending")
    fields.setdefault("tenant", "ml")
    member = Member(name=f"{name}-0", node=node, shares=shares, devices_known=devices is not None)
    return Job(id=f"ml/{name}", name=name, shape=shape, members=(member,), **fields)


def busy(peak: float = 0.95, mean: float = 0.8, window_seconds: int = 1800, samples: int = 60, **fields) -> Activity:
    """A fully sampled window with this peak and mean."""
    fields.setdefault("signal", "engine_active")
    fields.setdefault("samples_expected", samples)
    return Activity(window_seconds=window_seconds, samples=samples, peak_ratio=peak, mean_ratio=mean, **fields)


def idle(**fields) -> Activity:
    return busy(peak=0.0, mean=0.0, **fields)


def readings(utilization: float | None = 0.8, **fields) -> Telemetry:
    return Telemetry(utilization_ratio=utilization, **fields)


def a_snapshot(*nodes: Node, jobs: list[Job] | tuple[Job, ...] = (), **fields) -> ClusterSnapshot:
    fields.setdefault("cluster", "test")
    fields.setdefault("taken_at", NOW)
    return ClusterSnapshot(nodes=tuple(nodes), jobs=tuple(jobs), **fields)
