"""What a fleet is made of before time is put on it: nodes without readings, and slots, which become jobs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import DemandShape, DeviceShare, JobKind, JobPhase, Member
from gpuwatch.model.units import MILLI
from gpuwatch.simulate.behavior import BY_KIND

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cycle:
    """A slot whose job ends and comes again: every `period_seconds` a new one, running for the first `busy_ratio`."""

    period_seconds: float
    busy_ratio: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A job without dates. `behaviors[member][share]` names what that device does for it."""

    name: str
    tenant: str
    kind: JobKind
    shape: DemandShape
    members: tuple[Member, ...]
    owner: str
    age_seconds: float
    behaviors: tuple[tuple[str, ...], ...] = ()
    pool: str | None = None
    phase: JobPhase = "running"
    pending_reason: str | None = None
    priority: int | None = None
    preemptible: bool | None = None
    protected: bool = False
    checkpoint_seconds: float | None = None
    samples_ratio: float = 1.0
    cycle: Cycle | None = None


@dataclass(slots=True)
class Layout:
    """The fleet. `planted` maps each case made on purpose to its subjects (job id, node name or node/device)."""

    seed: int
    nodes: dict[str, Node] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    troubles: dict[tuple[str, int], str] = field(default_factory=dict)
    silent_slices: set[tuple[str, int, str]] = field(default_factory=set)
    planted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def pick(draw: Random, weighted: tuple[tuple[T, float], ...]) -> T:
    """One of the values, by weight."""
    return draw.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]


def behavior_of(kind: str, draw: Random) -> str:
    """A behavior id for a job of this kind."""
    return pick(draw, BY_KIND[kind])


def job_name(base: str, copy: int) -> str:
    """Names of the first copy stay as they are in the tables."""
    return base if copy == 0 else f"{base}-{copy + 1}"


def share(index: int, milligpu: int = MILLI, instance: str | None = None) -> DeviceShare:
    """A hold; a MIG instance takes no time share."""
    return DeviceShare(gpu_index=index, milligpu=0 if instance else milligpu, mig_instance=instance)
