"""Groups as the host engine knows them: their names, their entities, and how they are given back."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwatch_exporters.dcgm.engine import Engine, RefusedError
from gpuwatch_exporters.dcgm.layout import Entity

log = logging.getLogger(__name__)
_EMPTY_GROUP = 1


@dataclass(slots=True)
class Names:
    """Names and groups of entities of one connection. A host engine has room for 64 groups, of all its clients."""

    engine: Engine
    _handles: dict[tuple[Entity, ...], Any] = field(default_factory=dict)
    _count: int = 0

    def new(self, topic: str) -> str:
        """A name new to the host engine, also when the groups of a killed exporter are still there."""
        self._count += 1
        return f"gpuwatch_{os.getpid()}_{self.engine.connections}_{topic}_{self._count}"

    def of(self, entities: Sequence[Entity]) -> Any:
        """The group of these entities, made once for all topics. RefusedError."""
        key = tuple(entities)
        if key not in self._handles:
            handle = self.engine.call("dcgmGroupCreate", _EMPTY_GROUP, self.new("entities"))
            try:
                for kind, id_ in key:
                    self.engine.call("dcgmGroupAddEntity", handle, kind, id_)
            except RefusedError:
                ask(self.engine, "dcgmGroupDestroy", handle)
                raise
            self._handles[key] = handle
        return self._handles[key]

    def clear(self) -> None:
        """Gives the groups back."""
        for handle in self._handles.values():
            ask(self.engine, "dcgmGroupDestroy", handle)
        self._handles.clear()


@dataclass(slots=True)
class Group:
    """Entities and fields that are watched together, as the host engine knows them."""

    entities: list[Entity]
    fields: list[int]
    handle: Any = None
    field_handle: Any = None


def ask(engine: Engine, function: str, *arguments: Any) -> bool:
    """A call whose refusal is of no consequence. Whether it was taken; EngineGoneError."""
    try:
        engine.call(function, *arguments)
    except RefusedError as err:
        log.debug("%s: %s", function, err)
        return False
    return True
