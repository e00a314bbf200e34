"""Who should be here, who is, and who is missing: bus, driver's list, library and memory put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpuwatch_exporters.device.families import exporter as of
from gpuwatch_exporters.device.families import identity as about
from gpuwatch_exporters.device.frame import DeviceFrame, Identity, Value
from gpuwatch_exporters.node.driver_list import DriverList, Listed
from gpuwatch_exporters.node.pci import PciScan, Slot
from gpuwatch_exporters.node.remembered import Remembered
from gpuwatch_exporters.nvml.boards import Address
from gpuwatch_exporters.nvml.seats import Result
from gpuwatch_exporters.nvml.settings import Settings
from gpuwatch_exporters.nvml.worker import Worker

# Down reasons of devices that the library still lists.
STILL_LISTED = frozenset((None, "hung", "opening", "suspended", "resting"))

PAGE_SECONDS, CLOSE_SECONDS = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Bus:
    """What the kernel tells in this cycle of the devices that are ours. slots None: no bus is to be seen (not: no
    GPU), or part of it is not ours."""

    slots: tuple[Slot, ...] | None
    listed: frozenset[str] | None  # by the kernel driver
    counts: tuple[tuple[str, int], ...] = ()  # (source, GPUs that it lists), ours or not


@dataclass(slots=True)
class Roll:
    """The devices of one cycle. unidentified: (address, why it is not read) of those whose uuid nobody knows."""

    frames: list[DeviceFrame] = field(default_factory=list)
    present: list[Identity] = field(default_factory=list)  # told in this cycle, not remembered
    unidentified: list[tuple[str, str]] = field(default_factory=list)

    def add(self, identity: Identity, result: Result) -> None:
        """A device with what was read of it."""
        reading = result.reading
        if reading is None or result.down is not None:
            self.frames.append(DeviceFrame(identity, up=False, down_reason=result.down))
            return
        self.present.append(identity)
        values = reading.values
        if result.seconds is not None:
            values = (*values, Value(of.READ_SECONDS, (), result.seconds))
        self.frames.append(DeviceFrame(identity, True, None, values, reading.instances, reading.processes))


class Census:
    """Used by the thread of the cycle, which waits for no driver and no disk."""

    def __init__(self, settings: Settings) -> None:
        self._pci, self._drivers = PciScan(settings.sysfs), DriverList(settings.procfs)
        self._asker: Worker[Listed] = Worker("driver-list")
        self._writer: Worker[None] = Worker("state-file")
        self._whole_node, self._expected = settings.whole_node, settings.expected_gpus
        self._memory = Remembered(settings.state_file, settings.forget_seconds, self._writer.start)

    def close(self) -> None:
        """Ends the threads; gives a state file that is being written a moment."""
        self._asker.stop()
        self._writer.stop()
        self._writer.join(CLOSE_SECONDS)

    def look(self) -> Bus:
        """Asks the kernel; no device is touched."""
        slots, listed = self._pci.read(), self._drivers.read()
        sources = (("driver", listed), ("pci", slots))
        counts = tuple((name, len(found)) for name, found in sources if found is not None)
        return Bus(slots, listed, counts) if self._whole_node else Bus(None, None, counts)

    def call(
        self,
        results: Mapping[Address, tuple[Identity | None, Result]],
        bus: Bus,
        why: Callable[[Slot | None], str],
        now: float,
    ) -> Roll:
        """Everybody: the devices that were read, those on the bus that were not, and the missing (why of None).

        results: (who it is, as read now or before; what was read).
        """
        roll = Roll()
        read = {who.pci_bus_id for who, _ in results.values() if who is not None}
        for address, (who, result) in results.items():
            if who is not None:
                roll.add(who, result)
            elif isinstance(address, int) and not bus.slots:
                roll.unidentified.append((f"index:{address}", result.down or ""))
        for slot in bus.slots or ():
            if slot.pci_bus_id not in read:
                self._unread(slot, bus, why(slot), roll)
        absent = self._memory.update(roll.present, now)
        told = {each.identity.uuid for each in roll.frames}
        roll.frames += [DeviceFrame(each, False, why(None)) for each in absent if each.uuid not in told]
        sleeps = {slot.pci_bus_id: slot.suspended for slot in bus.slots or () if slot.runtime_status is not None}
        roll.frames = [_with_sleep(each, sleeps) for each in _in_order(roll.frames)]
        return roll

    def values(self, roll: Roll, bus: Bus, library: int | None, counted: bool) -> list[Value]:
        """The node's counts. counted False: nobody asked the library in this cycle, so that nothing is known of it."""
        found = len(roll.frames) + len(roll.unidentified)
        out = [Value(about.EXPECTED, (), found if self._expected is None else self._expected)]
        if counted:
            reasons = (*(each.down_reason for each in roll.frames), *(why for _, why in roll.unidentified))
            out.append(Value(about.VISIBLE, (), sum(reason in STILL_LISTED for reason in reasons)))
        sources = [*bus.counts, *([("library", library)] if library is not None else [])]
        out += [Value(of.LISTED, (name,), number) for name, number in sorted(sources)]
        out += [Value(of.UNIDENTIFIED_INFO, each, 1) for each in roll.unidentified]
        return out

    def trouble(self) -> str:
        """Why nothing is remembered over a restart: no_file, unreadable, broken, unwritable; "" when all is well."""
        return "no_file" if self._memory.file is None else self._memory.trouble or ""

    def _unread(self, slot: Slot, bus: Bus, why: str, roll: Roll) -> None:
        identity = self._memory.at_slot(slot.pci_bus_id)
        listed = bus.listed is not None and slot.pci_bus_id in bus.listed
        told = self._page(slot.pci_bus_id) if listed else None
        if told is not None and told.uuid:
            if identity is None or identity.uuid != told.uuid:
                identity = Identity(None, told.uuid, slot.pci_bus_id, told.model, minor=told.minor)
            roll.present.append(identity)
        if identity is None:
            roll.unidentified.append((slot.pci_bus_id, why))
            return
        roll.frames.append(DeviceFrame(identity, False, why))

    def _page(self, pci_bus_id: str) -> Listed | None:
        """What the driver's page tells of a device; None while the driver hangs."""
        work = self._asker.start(lambda: self._drivers.identify(pci_bus_id))
        return work.value if work is not None and work.wait(time.monotonic() + PAGE_SECONDS) else None


def at_slot(identity: Identity, pci_bus_id: str) -> Identity:
    """The identity as sitting at this address."""
    return identity if identity.pci_bus_id == pci_bus_id else replace(identity, pci_bus_id=pci_bus_id)


def _with_sleep(frame: DeviceFrame, sleeps: Mapping[str, bool]) -> DeviceFrame:
    """With the kernel's word on whether it sleeps, which is there for a device that is down as well."""
    asleep = sleeps.get(frame.identity.pci_bus_id)
    if asleep is None:
        return frame
    return replace(frame, values=(*frame.values, Value(of.SUSPENDED, (), 1 if asleep else 0)))


def _in_order(frames: Iterable[DeviceFrame]) -> list[DeviceFrame]:
    """By index, unknown ones last; one frame per uuid, the one that is up or came first."""
    best: dict[str, DeviceFrame] = {}
    for frame in frames:
        held = best.get(frame.identity.uuid)
        if held is None or (frame.up and not held.up):
            best[frame.identity.uuid] = frame
    return sorted(best.values(), key=lambda each: (each.identity.index is None, each.identity.index or 0))
