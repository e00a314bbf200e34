"""One cycle of one node as values: what a backend fills and everything else (text, compatibility names) prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gpuwatch_exporters.device.family import Family


class Value(NamedTuple):
    """One sample: its family, the values of the family's own labels in their order, and the number in base units."""

    family: Family
    labels: tuple[str, ...]
    number: float


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a device is. Only what the library told: an unknown text is "" and an unknown number None, never a guess.

    uuid keeps the library's spelling ("GPU-..."). pci_bus_id is lower case, domain of four digits: 0000:18:00.0
    (the kernel's spelling). model is the product name. minor is N of /dev/nvidiaN, where a cgroup allows or denies it.
    """

    index: int | None
    uuid: str
    pci_bus_id: str = ""
    model: str = ""
    serial: str = ""
    minor: int | None = None
    driver_version: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """A process with a context on a device. memory_bytes None: the driver does not tell."""

    pid: int
    memory_bytes: int | None = None
    gpu_instance: str | None = None
    kind: str = "compute"  # compute, graphics or mps


@dataclass(frozen=True, slots=True)
class InstanceFrame:
    """One MIG compute instance (one MIG device). id is the GPU instance's id, "3"; where a GPU instance is cut into
    several compute instances, id is "3/0", "3/1"."""

    id: str
    uuid: str
    profile: str | None = None
    placement_start: int | None = None
    placement_size: int | None = None
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceFrame:
    """One physical GPU. `up` False comes with a reason and without values that were not read in this cycle. Reasons:
    lost (it no longer answers), gone (off the bus), hung, opening, suspended, resting (left alone to fall asleep),
    released, not_listed, unbound (no driver holds it), fault, or the library's own error (driver_not_loaded ...)."""

    identity: Identity
    up: bool
    down_reason: str | None = None
    values: tuple[Value, ...] = ()
    instances: tuple[InstanceFrame, ...] = ()
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """Who holds a device (instance None) or one MIG instance of it. Unknown texts are "".

    source: where it was learned: podresources, slurm_cgroup, slurm_environment or process.
    """

    uuid: str
    instance: str | None = None
    namespace: str = ""
    pod: str = ""
    container: str = ""
    job_id: str = ""
    user: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """The node in one cycle. Devices are sorted by index, unknown ones (index None) last."""

    node: str
    devices: tuple[DeviceFrame, ...] = ()
    values: tuple[Value, ...] = ()  # of the node's own families
    workloads: tuple[Workload, ...] = ()
    notes: tuple[str, ...] = field(default=())  # for the landing page: one line each
