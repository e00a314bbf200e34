"""DCGM's background checks of each GPU: it watches a few fields for trouble and keeps what it found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuwatch_exporters.dcgm.engine import RefusedError
from gpuwatch_exporters.dcgm.groups import Names
from gpuwatch_exporters.dcgm.layout import Card, Entity
from gpuwatch_exporters.device.families import dcgm as of
from gpuwatch_exporters.device.frame import Value

TOPIC = "health"
_ALL_SYSTEMS = 0xFFFFFFFF
_PASS = 0
_SECONDS, _KEPT_SECONDS = 30, 600.0
WATCHES = ("pcie", "nvlink", "pmu", "mcu", "mem", "sm", "inforom", "thermal", "power", "driver")  # by bit


@dataclass(slots=True)
class Health:
    """The checks of all GPUs of a layout. `off`: why there are none, "" while there are."""

    names: Names
    off: str = "not_watched"
    _group: Any = None
    _found: dict[Entity, dict[str, int]] | None = None  # None: the host engine did not tell

    def start(self, cards: Sequence[Card]) -> None:
        """Has the host engine check. EngineGoneError."""
        self.off, self._found = "" if cards else "no_device", None
        if not cards:
            return
        engine = self.names.engine
        try:
            self._group = self.names.of([card.entity for card in cards])
            engine.call("dcgmHealthSet_v2", self._group, _ALL_SYSTEMS, int(_SECONDS * 1e6), _KEPT_SECONDS)
        except RefusedError as err:
            self.off = str(err)

    def read(self) -> None:
        """What was found by now. EngineGoneError."""
        self._found = None
        if self.off:
            return
        try:
            told = self.names.engine.call("dcgmHealthCheck", self._group)
        except RefusedError:
            return
        found: dict[Entity, dict[str, int]] = defaultdict(dict)
        for each in told.incidents[: told.incidentCount]:
            worst = found[each.entityInfo.entityGroupId, each.entityInfo.entityId]
            name = _name(each.system)
            worst[name] = max(worst.get(name, _PASS), each.health)
        self._found = found

    def values(self, card: Card) -> list[Value]:
        """One number per part of the GPU; none where nothing was told, which is no pass."""
        if self._found is None:
            return []
        levels = {**dict.fromkeys(WATCHES, _PASS), **self._found.get(card.entity, {})}
        return [Value(of.HEALTH, (name,), level) for name, level in levels.items()]


def _name(system: int) -> str:
    bit = system.bit_length() - 1
    return WATCHES[bit] if 0 <= bit < len(WATCHES) else "other"
