"""Which pods hold or want devices, and how much: the traps of counting pods live here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gpuwatch.assemble.resources import CPU, MEMORY, GpuAsk, gpu_asks
from gpuwatch.model.observations import ContainerRequests, PodRecord
from gpuwatch.model.snapshot import Finding
from gpuwatch.model.units import MILLI

_FINISHED = ("Succeeded", "Failed")
# GPU part of one container's amounts; the node decides what a plain GPU is there.
AskReader = Callable[[Mapping[str, float]], list[GpuAsk]]


@dataclass(frozen=True, slots=True)
class Want:
    """What a live pod takes: CPU, memory, and GPUs in one or more forms."""

    cpu_millicores: int
    memory_bytes: int
    asks: tuple[GpuAsk, ...]


def live_pods(pods: Iterable[PodRecord]) -> tuple[list[PodRecord], list[Finding]]:
    """Pods that hold or want something, one per name. Requests of finished pods stay published: they do not count."""
    by_name: dict[tuple[str, str], list[PodRecord]] = defaultdict(list)
    findings = []
    for pod in pods:
        if any(phase in _FINISHED for phase in pod.phases):  # a final state: another reader's older view loses
            continue
        if pod.phases:
            by_name[pod.namespace, pod.name].append(pod)
        elif any(container.amounts for container in pod.containers):
            detail = "has requests and no phase; it is not counted"
            subject = f"{pod.namespace}/{pod.name}"
            findings.append(Finding(code="pod_without_phase", severity="info", subject=subject, detail=detail))
    live = []
    for (namespace, name), same in sorted(by_name.items()):
        newest = max(same, key=lambda pod: (not pod.deletion_requested, pod.created_seconds or 0.0, pod.uid))
        live.append(newest)
        if len(same) > 1:
            detail = f"{len(same)} live pods carry this name; the newest is counted"
            subject = f"{namespace}/{name}"
            findings.append(Finding(code="duplicate_pod", severity="warning", subject=subject, detail=detail))
    return live, findings


def want_of(pod: PodRecord, asks: AskReader) -> Want:
    """The larger of what its start needs (each init container in turn) and what its run needs (all others at once)."""
    running = [container for container in pod.containers if not container.init or container.sidecar]
    starting = [container for container in pod.containers if container.init and not container.sidecar]
    beside = [container for container in running if container.sidecar]
    cpu, memory = (
        max(
            [_total(running, key)] + [_total([*beside, container], key) for container in starting],
        )
        for key in (CPU, MEMORY)
    )
    forms = [_merged(running, asks)] + [_merged([*beside, container], asks) for container in starting]
    return Want(cpu_millicores=round(cpu * MILLI), memory_bytes=round(memory), asks=max(forms, key=_weight))


def _total(containers: Iterable[ContainerRequests], key: str) -> float:
    return sum(container.amounts.get(key, 0.0) for container in containers)


def _merged(containers: Iterable[ContainerRequests], asks: AskReader) -> tuple[GpuAsk, ...]:
    """Asks of several containers; equal forms are one ask for more devices."""
    total: dict[tuple[int, str], int] = defaultdict(int)
    for container in containers:
        for ask in asks(container.amounts):
            total[ask.milligpu, ask.profile or ""] += ask.gpus
    return tuple(GpuAsk(gpus, milligpu, profile or None) for (milligpu, profile), gpus in sorted(total.items()))


def _weight(asks: tuple[GpuAsk, ...]) -> int:
    return sum(ask.gpus * ask.milligpu for ask in asks)


def asks_on(replicas: int, whole_is_profile: str | None, memory_bytes: int | None) -> AskReader:
    """The reader for pods on one kind of node (see resources.gpu_asks)."""

    def read(amounts: Mapping[str, float]) -> list[GpuAsk]:
        return gpu_asks(amounts, replicas=replicas, whole_is_profile=whole_is_profile, memory_bytes=memory_bytes)

    return read
