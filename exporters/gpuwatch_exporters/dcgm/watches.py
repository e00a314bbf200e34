"""Watches: what the host engine is asked to sample, per topic, and what it sampled last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwatch_exporters.dcgm.engine import Engine, RefusedError
from gpuwatch_exporters.dcgm.groups import Group, Names, ask
from gpuwatch_exporters.dcgm.layout import Card, Entity, pair
from gpuwatch_exporters.dcgm.topic import Topic
from gpuwatch_exporters.dcgm.values import Missing, number

EVENT_SECONDS, EVENT_SAMPLES = 3600.0, 1000  # of what happens seldom and counts each time
# Refusals that one field of many may be the reason of: an older DCGM does not know it.
_OF_A_FIELD = frozenset(("badparam", "unknown_field", "not_supported", "field_unsupported_by_api"))
# Profiling of different GPUs in one group; more entities than a group holds, 64 before DCGM 4.
_SPLITTABLE = frozenset(("group_incompatible", "max_limit"))
SLACK_SECONDS = 5.0
SLOW_SECONDS = 60.0

Sampled = dict[Entity, dict[int, float]]  # by entity, by field


@dataclass(slots=True)
class Watch:
    """One topic on all entities of a layout. `off`: why nothing of it is watched, "" while something is."""

    id: str
    topic: Topic
    names: Names
    seconds: float
    groups: list[Group] = field(default_factory=list)
    off: str = "not_watched"
    missing: Counter[str] = field(default_factory=Counter)  # why values were missing in the last read

    @property
    def engine(self) -> Engine:
        """The connection."""
        return self.names.engine

    def start(self, cards: Sequence[Card]) -> None:
        """Begins to watch. What the host engine refuses is left out and told in `off`; EngineGoneError."""
        self.groups = []
        wanted = [entity for card in cards for entity in entities(card, self.topic.kinds)]
        self.off = "" if wanted else "no_device"
        if wanted:
            self._split(cards, wanted, list(self.topic.fields))
        if self.groups:
            self.off = ""

    def stop(self) -> None:
        """Ends the watches; what a host engine refuses here is of no consequence."""
        for each in self.groups:
            self._free(each)
        self.groups = []

    def read(self, now: float, dropped: Counter[str]) -> Sampled:
        """The last samples that are believed, at Unix time `now`. dropped: counts those that are not."""
        self.missing.clear()
        out: Sampled = {}
        oldest = now - 3 * self.seconds - SLACK_SECONDS
        for group in self.groups:
            for told in self._latest(group.entities, group.fields):
                found = self._believed(told, oldest)
                if isinstance(found, Missing):
                    self.missing[found] += 1
                    if found == "stale":
                        dropped[found] += 1
                else:
                    out.setdefault((told.entityGroupId, told.entityId), {})[told.fieldId] = found
        return out

    def why(self) -> str:
        """Why values were missing in the last read, in one word: that they stopped coming is the worst of it."""
        if self.missing["stale"]:
            return "stale"
        return self.missing.most_common(1)[0][0] if self.missing else "no_value"

    def _latest(self, of: list[Entity], fields: list[int]) -> list[Any]:
        try:
            pairs = [pair(self.engine, each) for each in of]
            return list(self.engine.call("dcgmEntitiesGetLatestValues", pairs, fields, 0))
        except RefusedError as err:
            if len(of) == 1:
                self.missing[str(err)] += 1
                return []
            # One entity that has just gone must not take the others' values with it.
            return [told for each in of for told in self._latest([each], fields)]

    def _believed(self, told: Any, oldest: float) -> float | Missing:
        if told.status != self.engine.structs.DCGM_ST_OK:
            return Missing(self.engine.status_name(told.status))
        found = number(told)
        return Missing("stale") if not isinstance(found, Missing) and told.ts * 1e-6 < oldest else found

    def _split(self, cards: Sequence[Card], wanted: list[Entity], fields: list[int]) -> None:
        """Watches in as few groups as the host engine accepts."""
        group = Group(wanted, fields)
        try:
            self._watch(group)
            self.groups.append(group)
        except RefusedError as err:
            self._free(group)
            self.off = str(err)
            if self.off in _OF_A_FIELD and len(fields) > 1:
                half = len(fields) // 2
                self._split(cards, wanted, fields[:half])
                self._split(cards, wanted, fields[half:])
            elif self.off in _SPLITTABLE and len(cards) > 1:
                for card in cards:
                    self._split((card,), entities(card, self.topic.kinds), fields)

    def _watch(self, group: Group) -> None:
        call = self.engine.call
        group.handle = self.names.of(group.entities)
        group.field_handle = call("dcgmFieldGroupCreate", group.fields, self.names.new(self.id))
        keep_seconds, samples = (EVENT_SECONDS, EVENT_SAMPLES) if self.topic.events else (3 * self.seconds, 2)
        microseconds = int(self.seconds * 1e6)
        call("dcgmWatchFields", group.handle, group.field_handle, microseconds, keep_seconds, samples)

    def _free(self, group: Group) -> None:
        if group.field_handle is not None:
            ask(self.engine, "dcgmUnwatchFields", group.handle, group.field_handle)
            ask(self.engine, "dcgmFieldGroupDestroy", group.field_handle)


def entities(card: Card, kinds: Iterable[int]) -> list[Entity]:
    """The GPU and its MIG instances, as far as they are of these kinds."""
    found = [card.entity, *(each.entity for each in card.slices)]
    wanted = tuple(kinds)
    return [each for each in found if each[0] in wanted]


def period(topic: Topic, interval: float) -> float:
    """Seconds between two samples of a topic."""
    return max(SLOW_SECONDS, interval) if topic.slow else interval
