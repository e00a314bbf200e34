"""The host engine behind the fake bindings: GPUs, MIG instances, samples, and everything that can go wrong."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dcgm_structs as structs

LIVE = 1
GPU, GPU_INSTANCE, COMPUTE_INSTANCE = 1, 4, 5
OK, LOST = 1, 4
NAME, NVML_INDEX, MINOR = 50, 52, 55
MOST_GROUPS = 64
MOST_ENTITIES = 64  # of a group, before DCGM 4
Entity = tuple[int, int]


@dataclass
class Instance:
    """A MIG GPU instance: DCGM's number of it, the driver's, its profile, its compute instances."""

    id: int
    nvml_id: int
    profile: str
    compute_instances: tuple[int, ...] = (0,)


@dataclass
class Gpu:
    uuid: str
    index: int
    pci_bus_id: str
    model: str = "NVIDIA H100 80GB HBM3"
    serial: str = "1650000000001"
    driver_version: str = "570.86.15"
    status: int = OK
    instances: list[Instance] = field(default_factory=list)


@dataclass
class HostEngine:
    """samples: number, text, or a DCGM_ST_* wrapped in Failed, by entity and field."""

    gpus: dict[int, Gpu] = field(default_factory=dict)
    samples: dict[Entity, dict[int, Any]] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    alive: bool = True
    sampled_at: float | None = None  # Unix seconds; None: now
    unknown_fields: set[int] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)  # function -> DCGM_ST_*
    refused_watches: dict[int, int] = field(default_factory=dict)  # field -> DCGM_ST_*
    mixed_groups_refused_for: set[int] = field(default_factory=set)  # fields
    events: list[tuple[Entity, int, int, int]] = field(default_factory=list)  # entity, field, microseconds, number
    incidents: list[tuple[Entity, int, int]] = field(default_factory=list)  # entity, system's bit, 10 or 20
    checked: list[Entity] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    then: dict[str, Callable[[], None]] = field(default_factory=dict)  # function -> what happens before it, once
    connected_to: list[tuple[str, bool]] = field(default_factory=list)
    watched: dict[tuple[int, int], int] = field(default_factory=dict)  # (group, field group) -> microseconds
    _handle: int | None = None
    _groups: dict[int, tuple[str, list[Any]]] = field(default_factory=dict)
    _next: int = 100

    @classmethod
    def of_two_gpus(cls) -> HostEngine:
        """A whole GPU and one with two MIG instances, with every sample of the fields that tests look at."""
        engine = cls()
        engine.gpus[0] = Gpu("GPU-aaaa", 0, "00000000:18:00.0")
        slices = [Instance(7, 1, "MIG 3g.40gb"), Instance(8, 5, "MIG 1g.10gb")]
        engine.gpus[1] = Gpu("GPU-bbbb", 1, "00000000:2A:00.0", instances=slices)
        for gpu in engine.gpus:
            engine.samples[GPU, gpu] = {203: 87 if gpu == 0 else 0, 252: 61234, 250: 81559, 155: 612.44, 150: 61}
        for each, share in ((7, 0.5), (8, 0.125)):
            engine.samples[GPU_INSTANCE, each] = {1001: share, 252: 9000, 250: 40192}
        return engine

    # Connections.

    def connect(self, address: str, is_socket: bool, timeout_ms: int) -> ctypes.c_void_p:
        if not self.alive:
            raise structs.DCGMError(structs.DCGM_ST_CONNECTION_NOT_VALID)
        self.connected_to.append((address, is_socket))
        self._next += 1
        self._handle = self._next
        return ctypes.c_void_p(self._handle)

    def disconnect(self, handle: Any) -> int:
        self.enter("dcgmDisconnect", handle)
        self.forget()
        return structs.DCGM_ST_OK

    def forget(self) -> None:
        """What a host engine does when its client is gone: its groups and watches are gone, too."""
        self._handle = None
        self._groups.clear()
        self.watched.clear()

    def die(self) -> None:
        self.alive = False
        self.forget()

    def enter(self, function: str, handle: Any) -> None:
        self.calls[function] += 1
        self.then.pop(function, lambda: None)()
        if not self.alive or self._handle is None or handle.value != self._handle:
            raise structs.DCGMError(structs.DCGM_ST_CONNECTION_NOT_VALID)
        if function in self.refused:
            raise structs.DCGMError(self.refused[function])

    # Entities.

    def gpu(self, id_: int) -> Gpu:
        if id_ not in self.gpus:
            raise structs.DCGMError(structs.DCGM_ST_BADPARAM)
        return self.gpus[id_]

    def hierarchy(self) -> list[tuple[Entity, Entity, int]]:
        out: list[tuple[Entity, Entity, int]] = []
        for id_, gpu in self.gpus.items():
            for each in gpu.instances:
                out.append(((GPU_INSTANCE, each.id), (GPU, id_), each.nvml_id))
                out += [
                    ((COMPUTE_INSTANCE, 100 * each.id + number), (GPU_INSTANCE, each.id), each.nvml_id)
                    for number in each.compute_instances
                ]
        return out

    def known(self, entity: Entity) -> None:
        every = {(GPU, id_) for id_ in self.gpus} | {entity for entity, _, _ in self.hierarchy()}
        if entity not in every:
            raise structs.DCGMError(structs.DCGM_ST_BADPARAM)

    # Groups and watches.

    def new_group(self, name: str, members: list[Any]) -> ctypes.c_void_p:
        if len(self._groups) >= 2 * MOST_GROUPS:
            raise structs.DCGMError(structs.DCGM_ST_MAX_LIMIT)
        if any(name == taken for taken, _ in self._groups.values()):
            raise structs.DCGMError(structs.DCGM_ST_DUPLICATE_KEY)
        self._next += 1
        self._groups[self._next] = (name, members)
        return ctypes.c_void_p(self._next)

    def group(self, handle: Any) -> list[Any]:
        if handle is None or handle.value not in self._groups:
            raise structs.DCGMError(structs.DCGM_ST_BADPARAM)
        return self._groups[handle.value][1]

    def drop_group(self, handle: Any) -> int:
        self.group(handle)
        del self._groups[handle.value]
        return structs.DCGM_ST_OK

    def group_count(self) -> int:
        return len(self._groups)

    def watch(self, group: Any, field_group: Any, microseconds: int) -> int:
        fields = self.group(field_group)
        for each in fields:
            if each in self.refused_watches:
                raise structs.DCGMError(self.refused_watches[each])
        gpus = [id_ for kind, id_ in self.group(group) if kind == GPU]
        if len(gpus) > 1 and set(fields) & self.mixed_groups_refused_for:
            raise structs.DCGMError(structs.DCGM_ST_GROUP_INCOMPATIBLE)
        self.watched[group.value, field_group.value] = microseconds
        return structs.DCGM_ST_OK

    def unwatch(self, group: Any, field_group: Any) -> int:
        self.watched.pop((group.value, field_group.value), None)
        return structs.DCGM_ST_OK

    def watched_fields(self, entity: Entity) -> set[int]:
        return {
            each
            for group, field_group in self.watched
            if entity in self._groups[group][1]
            for each in self._groups[field_group][1]
        }

    # Samples.

    def fill(self, told: Any, entity: Entity, field_id: int, live: bool) -> None:
        told.fieldId = field_id
        told.ts = int((self.now() if self.sampled_at is None else self.sampled_at) * 1e6)
        if not live and field_id not in self.watched_fields(entity):
            told.status = structs.DCGM_ST_NOT_WATCHED
            return
        value = self._live(entity, field_id) if live else self.samples.get(entity, {}).get(field_id)
        if value is None:
            told.status = structs.DCGM_ST_NO_DATA
        elif isinstance(value, Failed):
            told.status = value.code
            told.fieldType, told.value.i64 = ord("i"), 1  # what the memory holds beside an error is no value
        elif isinstance(value, str):
            told.fieldType, told.value.str = ord("s"), value.encode()
        elif isinstance(value, float):
            told.fieldType, told.value.dbl = ord("d"), value
        else:
            told.fieldType, told.value.i64 = ord("i"), value

    def _live(self, entity: Entity, field_id: int) -> Any:
        kind, id_ = entity
        if kind == GPU:
            return {NAME: self.gpus[id_].model, NVML_INDEX: self.gpus[id_].index, MINOR: self.gpus[id_].index}.get(
                field_id
            )
        found = [each for gpu in self.gpus.values() for each in gpu.instances if each.id == id_]
        return found[0].profile if found and field_id == NAME else None


@dataclass(frozen=True)
class Failed:
    """A sample that the host engine could not take."""

    code: int
