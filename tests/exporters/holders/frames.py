"""Frames for these tests: GPUs whose index and minor differ, MIG instances, processes."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Identity, InstanceFrame, Process, Value, Workload


def uuid(number: int) -> str:
    return f"GPU-{number:08x}-2222-3333-4444-555555555555"


def mig_uuid(number: int) -> str:
    return f"MIG-{number:08x}-6666-7777-8888-999999999999"


def device(
    index: int,
    minor: int | None = None,
    instances: Iterable[InstanceFrame] = (),
    processes: Iterable[Process] = (),
) -> DeviceFrame:
    who = Identity(index, uuid(index), pci_bus_id=f"0000:{16 + index:02x}:00.0", minor=minor)
    return DeviceFrame(who, True, instances=tuple(instances), processes=tuple(processes))


def instance(id_: str, number: int, profile: str = "1g.10gb", start: int = 0, size: int = 1) -> InstanceFrame:
    return InstanceFrame(id_, mig_uuid(number), profile, start, size)


def frame(*devices: DeviceFrame) -> Frame:
    return Frame("node-a", devices)


def plain(count: int = 4) -> Frame:
    """GPUs 0, 1, ... whose device files are numbered the same."""
    return frame(*(device(index, index) for index in range(count)))


def told(workloads: Iterable[Workload]) -> set[tuple[str, str | None, str]]:
    """(uuid, instance, holder) of each workload, the holder as pod, job or user."""
    return {(w.uuid, w.instance, w.pod or w.job_id or w.user) for w in workloads}


def number_of(values: Iterable[Value], name: str, *labels: str) -> float | None:
    """The value of one series of the node; None where it is absent."""
    [found] = [v.number for v in values if v.family.name == name and v.labels == labels] or [None]
    return found


def by_label(values: Iterable[Value], name: str) -> dict[tuple[str, ...], float]:
    return {v.labels: v.number for v in values if v.family.name == name}
