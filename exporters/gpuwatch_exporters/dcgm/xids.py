"""XIDs as true counters: the host engine keeps each of them with its time, its own value is only the last one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from gpuwatch_exporters.dcgm.engine import Engine, RefusedError
from gpuwatch_exporters.dcgm.groups import Group
from gpuwatch_exporters.dcgm.layout import Card
from gpuwatch_exporters.dcgm.values import Missing, number
from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.device.frame import Value


class Xids:
    """Counts by uuid, so that they go on when the host engine was connected anew or numbers its GPUs otherwise."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._times: dict[str, Counter[int]] = defaultdict(Counter)
        self._last: dict[tuple[str, int], float] = {}
        self._since = 0  # microseconds: what the host engine kept from before belongs to this hour and is counted

    def read(self, groups: Iterable[Group], cards: Iterable[Card]) -> None:
        """Takes what is new. EngineGoneError."""
        uuids = {card.entity: card.identity.uuid for card in cards}

        def take(kind: int, entity: int, values: Any, count: int, _: Any) -> int:
            uuid = uuids.get((kind, entity), "")
            for told in values[0:count]:
                self._take(uuid, told)
            return 0

        callback = self._engine.callback(take)
        newest = self._since
        for group in groups:
            for entity in group.entities:
                if entity in uuids:
                    self._times[uuids[entity]].update()  # watched from now on: 0 is none, not unknown
            try:
                since = self._engine.call(
                    "dcgmGetValuesSince_v2", group.handle, group.field_handle, self._since, callback, self
                )
                newest = max(newest, int(since))
            except RefusedError:
                continue
        self._since = newest

    def values(self, uuid: str) -> list[Value]:
        """Counts and times of one GPU; 0 for all codes together from the start on. Nothing of one never watched."""
        times = self._times.get(uuid)
        if times is None:
            return []
        out = [Value(of.XID_EVENTS, (), times.total())]
        for code, number_ in sorted(times.items()):
            out.append(Value(of.XID_ERRORS, (str(code),), number_))
            out.append(Value(of.XID_LAST, (str(code),), self._last[uuid, code]))
        return out

    def _take(self, uuid: str, told: Any) -> None:
        found = number(told) if told.status == self._engine.structs.DCGM_ST_OK else Missing("failed")
        if isinstance(found, Missing) or found <= 0 or not uuid:
            return
        code = int(found)
        self._times[uuid][code] += 1
        self._last[uuid, code] = max(told.ts * 1e-6, self._last.get((uuid, code), 0.0))
