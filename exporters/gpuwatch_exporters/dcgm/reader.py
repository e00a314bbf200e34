"""The devices of a host engine in one cycle: who is there, what was sampled of them, which topics give values."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from gpuwatch_exporters.dcgm.engine import Engine
from gpuwatch_exporters.dcgm.groups import Names, ask
from gpuwatch_exporters.dcgm.health import TOPIC as HEALTH
from gpuwatch_exporters.dcgm.health import Health
from gpuwatch_exporters.dcgm.layout import Card, Layout, Uuids
from gpuwatch_exporters.dcgm.samples import Translator
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.dcgm.watches import Sampled, Watch, entities, period
from gpuwatch_exporters.dcgm.xids import Xids
from gpuwatch_exporters.device.frame import DeviceFrame, InstanceFrame, Value

log = logging.getLogger(__name__)
# Of a GPU cut into MIG instances these are 0 or absent, and no measure of it.
NOT_OF_A_PARENT = frozenset((203, 204))
Features = dict[tuple[str, str, str], int]  # (feature, on or off, why) -> GPUs, 1 for what is of the node


class Reader:
    """Keeps watches on what is there. `dropped` counts values that were not believed, by reason."""

    def __init__(self, engine: Engine, settings: Settings, uuids: Uuids) -> None:
        self.topics = {id_: topic for id_, topic in TOPICS.items() if id_ not in settings.disabled}
        self.dropped = Counter({"stale": 0, "out_of_range": 0})  # a counter that appears at 1 shows no increase
        self._engine, self._names = engine, Names(engine)
        self._layout, self._xids = Layout(engine, uuids), Xids(engine)
        self._translator = Translator(self.topics)
        self._watches = {
            id_: Watch(id_, topic, self._names, period(topic, settings.interval)) for id_, topic in self.topics.items()
        }
        self._checks = [] if HEALTH in settings.disabled else [Health(self._names)]
        self._watched: tuple[int, int] | None = None  # (connection, generation of the layout)

    def read(self, now: float) -> tuple[list[DeviceFrame], Features]:
        """Devices whose uuid is told, and features, at Unix time `now`. EngineGoneError; RefusedError when the host
        engine does not even list its GPUs."""
        self._layout.look()
        self._watch()
        return self._devices(now)

    def xids(self, uuid: str) -> tuple[Value, ...]:
        """The XIDs of a GPU, also of one that is down: they are often the last word of a lost one."""
        watch = self._watches.get("xid")
        return () if watch is None or watch.off else tuple(self._xids.values(uuid))

    def nameless(self) -> list[int]:
        """DCGM's numbers of the GPUs whose uuid it does not tell."""
        return [card.entity[1] for card in self._layout.cards if not card.identity.uuid]

    def _watch(self) -> None:
        """Watches what is there now; nothing to do while it is what it was."""
        state = self._engine.connections, self._layout.generation
        if state == self._watched:
            return
        if self._watched is not None and self._watched[0] == state[0]:
            for watch in self._watches.values():
                watch.stop()
            self._names.clear()
        else:  # the host engine dropped them with the connection
            self._names = Names(self._engine)
            for watch in self._watches.values():
                watch.names = self._names
            for check in self._checks:
                check.names = self._names
        for watch in self._watches.values():
            watch.start(self._layout.cards)
            if watch.off:
                log.info("%s is off: %s", watch.id, watch.off)
        for check in self._checks:
            check.start(self._layout.cards)
        ask(self._engine, "dcgmUpdateAllFields", 1)  # so that the first cycle has values
        self._watched = state

    def _devices(self, now: float) -> tuple[list[DeviceFrame], Features]:
        cards = self._layout.cards
        down = {card.entity: self._layout.down(card) for card in cards}
        sampled: dict[str, Sampled] = {}
        for id_, watch in self._watches.items():
            if watch.topic.events:
                self._xids.read(watch.groups, cards)
            else:
                sampled[id_] = watch.read(now, self.dropped)
        features = {
            labels: gpus
            for id_, watch in self._watches.items()
            for labels, gpus in self._features(id_, watch, sampled.get(id_))
        }
        for check in self._checks:
            check.read()
            features[HEALTH, "off" if check.off else "on", check.off] = len(cards)
        known = (card for card in cards if card.identity.uuid)
        return [self._device(card, down[card.entity], sampled.values()) for card in known], features

    def _device(self, card: Card, down: str | None, topics: Iterable[Sampled]) -> DeviceFrame:
        topics = list(topics)
        own = {id_: raw for topic in topics for id_, raw in topic.get(card.entity, {}).items()}
        instances = [{id_: raw for topic in topics for id_, raw in topic.get(each.entity, {}).items()}
                     for each in card.slices]  # fmt: skip
        if down is None and not own and not any(instances):
            down = "no_values"
        if down is not None:
            return DeviceFrame(card.identity, up=False, down_reason=down, values=self.xids(card.identity.uuid))
        if card.slices:
            own = {id_: raw for id_, raw in own.items() if id_ not in NOT_OF_A_PARENT}
        values = partial(self._translator.values, dropped=self.dropped)
        return DeviceFrame(
            card.identity,
            up=True,
            values=(
                *values(own),
                *self.xids(card.identity.uuid),
                *(value for check in self._checks for value in check.values(card)),
            ),
            instances=tuple(
                InstanceFrame(each.id, each.uuid, each.profile, values=tuple(values(seen)))
                for each, seen in zip(card.slices, instances, strict=True)
            ),
        )

    def _features(self, id_: str, watch: Watch, sampled: Sampled | None) -> Iterator[tuple[tuple[str, str, str], int]]:
        """How many GPUs have the topic's values, and how many have none and why."""
        cards = self._layout.cards
        if watch.off:
            yield (id_, "off", watch.off), len(cards)
            return
        with_values = len(cards)
        if sampled is not None:
            with_values = sum(any(each in sampled for each in entities(card, watch.topic.kinds)) for card in cards)
        if with_values:
            yield (id_, "on", ""), with_values
        if with_values < len(cards):
            yield (id_, "off", watch.why()), len(cards) - with_values
