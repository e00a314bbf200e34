"""Which GPUs and MIG instances a host engine knows, and who they are. Asked each cycle; names only when it changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwatch_exporters.dcgm.engine import Engine, RefusedError
from gpuwatch_exporters.dcgm.values import Missing, clean, number, text
from gpuwatch_exporters.device.frame import Identity
from gpuwatch_exporters.node.pci import kernel_address

# Kinds of entities and fields by number: DCGM renames its constants between releases, the numbers stay.
GPU, GPU_INSTANCE, COMPUTE_INSTANCE = 1, 4, 5
_NAME, _NVML_INDEX, _MINOR = 50, 52, 55
_LIVE = 1  # asks the driver now, without a watch
# What DCGM says of a GPU that it lists; the others (1 ok, 5 injected for tests) are up.
STATUS_DOWN = {2: "unsupported", 3: "inaccessible", 4: "lost", 6: "disabled", 7: "detached"}
NOBODY = Identity(None, "")  # of a GPU of which nothing is told
_PROFILE = re.compile(r"\d+g\.\d+gb(?:[+-][a-z0-9.]+)*", re.IGNORECASE)

Entity = tuple[int, int]  # (kind, id)
Hierarchy = tuple[tuple[Entity, Entity, int], ...]  # (instance, what it is part of, the driver's number of it)
Uuids = Callable[[Iterable[str]], Mapping[tuple[str, int], tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Slice:
    """A MIG GPU instance. id: the driver's. uuid: of its only compute instance, "" where there are several or none is
    told."""

    entity: Entity
    id: str
    uuid: str = ""
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU of the host engine."""

    entity: Entity
    identity: Identity
    slices: tuple[Slice, ...] = ()


@dataclass(slots=True)
class Layout:
    """The entities of this connection. `generation` grows when they changed: then watches are made anew."""

    engine: Engine
    mig_uuids: Uuids
    generation: int = 0
    cards: tuple[Card, ...] = ()
    _seen: tuple[int, tuple[int, ...], Hierarchy] | None = None
    _stale: bool = False
    _known: dict[int, Identity] = field(default_factory=dict)  # of this connection, by DCGM's number

    def look(self) -> None:
        """Asks who is there. EngineGoneError; RefusedError when not even that is answered."""
        gpus = [int(each) for each in self.engine.call("dcgmGetAllDevices")]
        hierarchy = self._hierarchy()
        seen = (self.engine.connections, tuple(gpus), hierarchy)
        if seen == self._seen and not self._stale:
            return
        if self._seen is None or self._seen[0] != seen[0]:  # another host engine may count otherwise
            self._known.clear()
        self._known |= {gpu: who for gpu in gpus if (who := self._identity(gpu)) is not None}
        # Not told, for instance of a GPU that is being reset: asked again with the next cycle.
        self._stale = not self._known.keys() >= set(gpus)
        cards = self._cards({gpu: self._known.get(gpu, NOBODY) for gpu in gpus}, hierarchy)
        self._seen = seen
        if cards != self.cards:
            self.cards = cards
            self.generation += 1

    def down(self, card: Card) -> str | None:
        """Why the host engine cannot read the GPU, None when it can or does not tell."""
        try:
            return STATUS_DOWN.get(self.engine.call("dcgmGetGpuStatus", card.entity[1]))
        except RefusedError:
            return None

    def _hierarchy(self) -> Hierarchy:
        """Of every GPU and compute instance."""
        try:
            told = self.engine.call("dcgmGetGpuInstanceHierarchy")
        except RefusedError:  # no GPU of this host can do MIG
            return ()
        return tuple(
            (
                (each.entity.entityGroupId, each.entity.entityId),
                (each.parent.entityGroupId, each.parent.entityId),
                each.info.nvmlInstanceId,
            )
            for each in told.entityList[: told.count]
        )

    def _cards(self, identities: Mapping[int, Identity], hierarchy: Hierarchy) -> tuple[Card, ...]:
        parts: dict[Entity, list[tuple[Entity, int]]] = defaultdict(list)
        for entity, parent, number_ in hierarchy:
            if entity[0] == GPU_INSTANCE:
                parts[parent].append((entity, number_))
        cut = [identity.uuid for gpu, identity in identities.items() if parts[GPU, gpu]]
        uuids = self.mig_uuids(cut) if cut else {}
        cards = []
        for gpu, identity in identities.items():
            slices = []
            for entity, number_ in parts[GPU, gpu]:
                own = uuids.get((identity.uuid, number_), ())
                profile = _profile(self._live(entity, (_NAME,)))
                slices.append(Slice(entity, str(number_), own[0] if len(own) == 1 else "", profile))
            cards.append(Card((GPU, gpu), identity, tuple(sorted(slices, key=lambda each: int(each.id)))))
        return tuple(sorted(cards, key=lambda each: (each.identity.index is None, each.identity.index or 0)))

    def _identity(self, gpu: int) -> Identity | None:
        try:
            told = self.engine.call("dcgmGetDeviceAttributes", gpu).identifiers
        except RefusedError:
            return None
        if not clean(told.uuid):
            return None
        numbers = {each.fieldId: number(each) for each in self._live((GPU, gpu), (_NVML_INDEX, _MINOR))}
        return Identity(
            index=_whole(numbers.get(_NVML_INDEX)),
            uuid=clean(told.uuid),
            pci_bus_id=kernel_address(clean(told.pciBusId)),
            model=clean(told.deviceName),
            serial=clean(told.serial),
            minor=_whole(numbers.get(_MINOR)),
            driver_version=clean(told.driverVersion),
        )

    def _live(self, entity: Entity, fields: tuple[int, ...]) -> list[Any]:
        """Field values that the host engine reads now; those that it could not read are left out."""
        try:
            told = self.engine.call("dcgmEntitiesGetLatestValues", [pair(self.engine, entity)], list(fields), _LIVE)
        except RefusedError:
            return []
        return [each for each in told if each.status == self.engine.structs.DCGM_ST_OK]


def pair(engine: Engine, entity: Entity) -> Any:
    """The entity as the structure that calls take."""
    out = engine.structs.c_dcgmGroupEntityPair_t()
    out.entityGroupId, out.entityId = entity
    return out


def _whole(told: float | Missing | None) -> int | None:
    return int(told) if isinstance(told, float) and 0 <= told < 1 << 16 else None


def _profile(values: Iterable[Any]) -> str | None:
    """The profile in a text like "MIG 1g.10gb"; None for anything else."""
    for each in values:
        found = _PROFILE.search(text(each))
        if found:
            return found[0].lower()
    return None
