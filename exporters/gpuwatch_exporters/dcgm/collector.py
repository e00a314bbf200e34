"""One cycle: what the host engine sampled last, as a Frame."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from gpuwatch.clock import Clock, SystemClock
from gpuwatch_exporters.dcgm import bindings as of_dcgm
from gpuwatch_exporters.dcgm.engine import Engine, EngineGoneError, RefusedError
from gpuwatch_exporters.dcgm.layout import Uuids
from gpuwatch_exporters.dcgm.mig_uuids import mig_uuids
from gpuwatch_exporters.dcgm.reader import Features, Reader
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.device.families import dcgm as of
from gpuwatch_exporters.device.families import exporter as common
from gpuwatch_exporters.device.families import identity as about
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Value
from gpuwatch_exporters.node.pci import PciScan
from gpuwatch_exporters.node.remembered import Remembered

log = logging.getLogger(__name__)
GONE = frozenset(("lost", "detached", "disabled"))
RELEASE_SECONDS = 2.0  # for a cycle that is under way


class Collector:
    """Everything between the host engine and a Frame. Any thread may release and resume.

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
        self._engine = Engine(of_dcgm.find(settings.bindings), settings, monotonic)
        self._reader = Reader(self._engine, settings, uuids)
        self._memory = Remembered(settings.state_file, settings.forget_seconds)
        self._pci = PciScan(settings.sysfs) if settings.is_local else None
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
            missing = self._memory.update([each.identity for each in devices], now)
            why = "not_listed" if self._engine.reason == "" else self._engine.reason
            devices += [DeviceFrame(who, False, why, self._reader.xids(who.uuid)) for who in missing]
            devices.sort(key=lambda each: (each.identity.index is None, each.identity.index or 0))
            features |= {(id_, "off" if off else "on", off): 1 for id_, off in (node_features or {}).items()}
            return self._frame(devices, features)

    def release(self) -> bool:
        """Gives back the connection, or ends the host engine of this process, which lets go of the devices. Whether
        that is done; if not, a call hangs, and the first cycle after it does it."""
        self._released = True
        if not self._lock.acquire(timeout=RELEASE_SECONDS):
            return False
        try:
            self._engine.close("released")
        finally:
            self._lock.release()
        return True

    def resume(self) -> None:
        """Takes it up again with the next cycle."""
        self._released = False

    def close(self) -> None:
        """Gives everything back."""
        with self._lock:
            self._engine.close()

    def _read(self, now: float) -> tuple[list[DeviceFrame], Features]:
        """The host engine's devices and its features; none while it does not answer."""
        if self._released:
            self._engine.close("released")
            return [], {}
        try:
            if not self._engine.ensure():
                return [], {}
            return self._reader.read(now)
        except EngineGoneError:
            return [], {}
        except RefusedError as err:
            log.debug("the host engine lists nothing: %s", err)
            return [], {(id_, "off", str(err)): 1 for id_ in self._reader.topics}

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
        values += [Value(of.DROPPED, (reason,), times) for reason, times in sorted(self._reader.dropped.items())]
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
            return [] if self._engine.reason else [f"dcgm:{number}" for number in self._reader.nameless()]
        known = {each.identity.pci_bus_id for each in devices}
        return [slot.pci_bus_id for slot in slots if slot.pci_bus_id not in known]
