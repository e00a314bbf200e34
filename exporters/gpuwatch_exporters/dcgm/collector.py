"""One cycle: what the host engine sampled last, as a Frame."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from gpuwatch.clock import Clock, SystemClock
from gpuwatch_exporters.dcgm import bindings as of_dcgm
from gpuwatch_exporters.dcgm.engine import Engine, EngineGoneError, RefusedError
from gpuwatch_exporters.dcgm.health import TOPIC as HEALTH
from gpuwatch_exporters.dcgm.health import Health
from gpuwatch_exporters.dcgm.layout import Card, Layout, Uuids
from gpuwatch_exporters.dcgm.mig_uuids import mig_uuids
from gpuwatch_exporters.dcgm.samples import Translator
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.dcgm.watches import Names, Sampled, Watch, ask, entities, period
from gpuwatch_exporters.dcgm.xids import Xids
from gpuwatch_exporters.device.families import dcgm as of
from gpuwatch_exporters.device.families import exporter as common
from gpuwatch_exporters.device.families import identity as about
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, InstanceFrame, Value
from gpuwatch_exporters.node.pci import PciScan
from gpuwatch_exporters.node.remembered import Remembered

log = logging.getLogger(__name__)
# Of a GPU cut into MIG instances these are 0 or absent, and no measure of it.
NOT_OF_A_PARENT = frozenset((203, 204))
Features = dict[tuple[str, str, str], int]  # (feature, on or off, why) -> GPUs, 1 for what is of the node
GONE = frozenset(("lost", "detached", "disabled"))


class Collector:
    """Everything between the host engine and a Frame. `collect`, `release`, `resume` and `close` exclude each other.

    SettingsError when DCGM's bindings or library are not here.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        uuids: Uuids = mig_uuids,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._clock = settings, clock or SystemClock()
        self._topics = {id_: topic for id_, topic in TOPICS.items() if id_ not in settings.disabled}
        self._translator = Translator(self._topics)
        self._engine = Engine(of_dcgm.find(settings.bindings), settings, monotonic)
        self._layout, self._xids = Layout(self._engine, uuids), Xids(self._engine)
        self._names = Names(self._engine)
        self._watches = {
            id_: Watch(id_, topic, self._names, period(topic, settings.interval)) for id_, topic in self._topics.items()
        }
        self._checks = [] if HEALTH in settings.disabled else [Health(self._names)]
        self._memory = Remembered(settings.state_file, settings.forget_seconds)
        self._pci = PciScan(settings.sysfs) if settings.is_local else None
        self._watched: tuple[int, int] | None = None  # (connection, generation of the layout)
        self._dropped: Counter[str] = Counter()
        self._released = False
        self._lock = threading.Lock()

    @property
    def unavailable(self) -> str:
        """Why the host engine does not answer, "" when it does."""
        return self._engine.reason

    def collect(self, node_features: Mapping[str, str] | None = None) -> Frame:
        """One cycle. node_features: features that others see to, "" for on."""
        with self._lock:
            now = self._clock.now().timestamp()
            devices, features = self._read(now)
            present = [each.identity for each in devices if each.identity.uuid and each.down_reason not in GONE]
            missing = self._memory.update(present, now)
            told = {each.identity.uuid for each in devices}
            why = "not_listed" if self._engine.reason == "" else self._engine.reason
            devices += [DeviceFrame(who, up=False, down_reason=why) for who in missing if who.uuid not in told]
            devices.sort(key=lambda each: (each.identity.index is None, each.identity.index or 0))
            features |= {(id_, "off" if off else "on", off): 1 for id_, off in (node_features or {}).items()}
            return self._frame(devices, features)

    def release(self) -> None:
        """Gives back the connection, or ends the host engine of this process, which lets go of the devices."""
        with self._lock:
            self._released = True
            self._engine.close("released", again=False)

    def resume(self) -> None:
        """Takes it up again with the next cycle."""
        with self._lock:
            self._released = False
            self._engine.reopen()

    def close(self) -> None:
        """Gives everything back."""
        with self._lock:
            self._engine.close()

    def _read(self, now: float) -> tuple[list[DeviceFrame], Features]:
        """The host engine's devices and its features; none while it does not answer."""
        try:
            if not self._engine.ensure():
                return [], {}
            self._layout.look()
            self._watch()
            return self._devices(now)
        except EngineGoneError:
            return [], {}
        except RefusedError as err:
            log.debug("the host engine lists nothing: %s", err)
            return [], {(id_, "off", str(err)): 1 for id_ in self._topics}

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
                sampled[id_] = watch.read(now, self._dropped)
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
            return DeviceFrame(card.identity, up=False, down_reason=down)
        if card.slices:
            own = {id_: raw for id_, raw in own.items() if id_ not in NOT_OF_A_PARENT}
        values = partial(self._translator.values, dropped=self._dropped)
        xids = self._xids.values(card) if "xid" in self._watches and not self._watches["xid"].off else ()
        return DeviceFrame(
            card.identity,
            up=True,
            values=(*values(own), *xids, *(value for check in self._checks for value in check.values(card))),
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

    def _frame(self, devices: list[DeviceFrame], features: Features) -> Frame:
        engine = self._engine
        unlisted = self._unlisted(devices)
        values = [
            Value(common.COLLECTING, (), 0 if self._released else 1),
            Value(of.AVAILABLE, (), 0 if engine.reason else 1),
            Value(of.CONNECTIONS, (), engine.connections),
            Value(about.EXPECTED, (), len(devices) + len(unlisted)),
        ]
        if engine.reason:
            values.append(Value(of.UNAVAILABLE_INFO, (engine.reason,), 1))
        else:
            listed = sum(each.up or each.down_reason not in {*GONE, "not_listed"} for each in devices)
            values.append(Value(about.VISIBLE, (), listed))
        values += [Value(common.UNIDENTIFIED_INFO, (address, "not_listed"), 1) for address in unlisted]
        values += [Value(common.CALL_FAILURES, key, times) for key, times in sorted(engine.failures.items())]
        values += [Value(of.DROPPED, (reason,), times) for reason, times in sorted(self._dropped.items())]
        disabled = {(id_, "off", "disabled"): max(1, len(devices)) for id_ in self._settings.disabled}
        values += [Value(common.FEATURES, each, gpus) for each, gpus in sorted((features | disabled).items())]
        notes = [f"GPU {each.identity.uuid} is down: {each.down_reason}" for each in devices if not each.up]
        state = f"not answering ({engine.reason})" if engine.reason else "connected"
        notes.insert(0, f"DCGM at {self._settings.told()}: {state}")
        return Frame(self._settings.node, tuple(devices), tuple(values), notes=tuple(notes))

    def _unlisted(self, devices: Iterable[DeviceFrame]) -> list[str]:
        """GPUs of which nobody knows the uuid: by address on this host's bus, else by DCGM's number."""
        slots = self._pci.read() if self._pci is not None else None
        if not slots:
            nameless = (
                (card for card in self._layout.cards if not card.identity.uuid) if not self._engine.reason else ()
            )
            return [f"dcgm:{card.entity[1]}" for card in nameless]
        known = {each.identity.pci_bus_id for each in devices}
        return [slot.pci_bus_id for slot in slots if slot.pci_bus_id not in known]
