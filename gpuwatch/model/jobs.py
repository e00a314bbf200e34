"""What asks for devices: resource shapes, jobs, their members and the devices these hold."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from gpuwatch.model.units import COMPUTE_SLICES, MILLI, gib, gpus
from gpuwatch.model.values import value

JobKind = Literal["training", "inference", "interactive", "batch", "unknown"]
JobPhase = Literal["running", "pending", "gated", "finished"]
_PROFILE_SLICES = re.compile(r"(\d)g\.")  # "3g.40gb": three compute slices


@value
class DemandShape:
    """The resource form of ONE member: `gpus` devices with `milligpu_per_gpu` of each, and CPU and memory beside them.

    gpus == 0 is a CPU-only shape. More than one device means whole devices (milligpu_per_gpu == 1000). A shape with
    `mig_profile` asks for `gpus` instances of that profile and no time share; its milligpu_per_gpu is 1000 by rule.
    """

    gpus: int
    milligpu_per_gpu: int = MILLI
    cpu_millicores: int = 0
    memory_bytes: int = 0
    gpu_models: tuple[str, ...] = ()  # accepted models, sorted; empty accepts any
    mig_profile: str | None = None

    @property
    def milligpu(self) -> int:
        """Thousandths of a device that one member takes in all (0 for CPU-only and MIG shapes)."""
        return 0 if self.mig_profile else self.gpus * self.milligpu_per_gpu

    @property
    def demanded_milligpu(self) -> int:
        """Thousandths of a device that one member asks for; a MIG instance counts its share of the compute slices."""
        if self.mig_profile is None:
            return self.milligpu
        slices = _PROFILE_SLICES.match(self.mig_profile)
        return round(self.gpus * MILLI * int(slices[1]) / COMPUTE_SLICES) if slices else 0

    @property
    def label(self) -> str:
        """A short, stable name for people and for the `shape` label: "1x0.46 6cpu T4", "8xGPU 96cpu", "cpu 4cpu"."""
        if self.mig_profile:
            head = f"{self.gpus}x{self.mig_profile}"
        elif self.gpus == 0:
            head = "cpu"
        elif self.milligpu_per_gpu == MILLI:
            head = f"{self.gpus}xGPU"
        else:
            head = f"{self.gpus}x{gpus(self.milligpu_per_gpu)}"
        parts = [head, f"{gpus(self.cpu_millicores)}cpu"]
        if self.memory_bytes:
            parts.append(gib(self.memory_bytes).replace(" ", ""))
        if self.gpu_models:
            parts.append("|".join(self.gpu_models))
        return " ".join(parts)


@value
class DeviceShare:
    """A member's hold on one device: a time share, or one MIG instance (then milligpu is 0)."""

    gpu_index: int
    milligpu: int = MILLI
    mig_instance: str | None = None


@value
class Member:
    """One pod or rank. Bound to `node` it holds devices, whatever its phase says; unbound it is demand."""

    name: str
    node: str | None = None
    shares: tuple[DeviceShare, ...] = ()
    devices_known: bool = False  # False with a node: it holds shape.gpus devices there, nobody says which
    terminating: bool = False


@value
class Job:
    """What a tenant submits. `shape` is per member; a gang has several members."""

    id: str  # unique in the snapshot, for example namespace/name
    name: str
    shape: DemandShape
    members: tuple[Member, ...] = ()
    tenant: str | None = None
    kind: JobKind = "unknown"
    phase: JobPhase = "running"
    priority: int | None = None
    pool: str | None = None  # the pool it asks for or runs in, when known
    owner: str | None = None  # for example Deployment/llm-server
    pending_reason: str | None = None
    preemptible: bool | None = None
    protected: bool = False  # asked not to be moved
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    last_checkpoint_at: datetime | None = None


@value
class ShapeCount:
    """How many members of one shape were submitted in the window behind a demand mix."""

    shape: DemandShape
    count: int
