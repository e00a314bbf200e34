"""One cycle: asks the kernel who is here, the library what they do, and puts it together as a Frame.

A cycle ends soon after its deadline whatever a device, the driver or the library does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from gpuwatch.clock import Clock, SystemClock
from gpuwatch_exporters.device.families import exporter as of
from gpuwatch_exporters.device.frame import Frame, Identity, Value
from gpuwatch_exporters.node.pci import Slot
from gpuwatch_exporters.nvml.accounts import Accounts, features, notes, with_features_off
from gpuwatch_exporters.nvml.boards import Address
from gpuwatch_exporters.nvml.census import Bus, Census, at_slot
from gpuwatch_exporters.nvml.group import GROUPS, Group
from gpuwatch_exporters.nvml.groups.processes import Processes
from gpuwatch_exporters.nvml.reopening import Reopening
from gpuwatch_exporters.nvml.rest import Rest, in_use
from gpuwatch_exporters.nvml.seats import Result, Seat
from gpuwatch_exporters.nvml.session import Facts, Session
from gpuwatch_exporters.nvml.settings import Settings

CLOSE_SECONDS = 1.5  # for calls that go on when the library is to be shut
Results = Mapping[Address, Result]


def all_groups(settings: Settings) -> dict[str, Group]:
    """Every registered group, as these settings want them."""
    own: dict[str, Group] = {"processes": Processes(settings.procfs, settings.process_memory)}
    return {id_: own.get(id_, group) for id_, group in GROUPS.items()}


class Collector:
    """Everything between the library and a Frame. `collect`, `release`, `resume` and `close` exclude each other."""

    def __init__(
        self, settings: Settings, clock: Clock | None = None, groups: Mapping[str, Group] | None = None
    ) -> None:
        """groups None: all that are registered."""
        # What else uses the library: called before it is shut. Must not raise, nor take long.
        self.before_close: list[Callable[[], None]] = []
        self._settings, self._clock = settings, clock or SystemClock()
        every = all_groups(settings) if groups is None else groups
        self._groups = {id_: group for id_, group in every.items() if id_ not in settings.disabled}
        self._disabled = settings.disabled & every.keys()
        self._census = Census(settings)
        # Tried at least each second cycle, so that values are back within two cycles of a driver that was loaded.
        self._session = Session(longest_wait=2 * settings.interval - 0.5)
        self._seats: dict[Address, Seat] = {}
        self._rest, self._resting = Rest(), frozenset[str]()
        self._accounts = Accounts()
        self._released = False
        self._reopen, self._reopening = False, Reopening()
        self._lock = threading.Lock()

    @property
    def released(self) -> bool:
        """Whether the devices are given up on request."""
        return self._released

    @property
    def unavailable(self) -> str:
        """Why the library is not open, "" when it is."""
        return self._session.reason

    def collect(self, node_features: Mapping[str, str] | None = None) -> Frame:
        """One cycle, in about device_timeout at most. node_features: features that others see to, "" for on."""
        with self._lock:
            until = time.monotonic() + self._settings.device_timeout
            bus = self._census.look()
            facts = self._open(until)
            self._resting = self._rest.look(bus.slots or ())
            addresses = self._addresses(bus, facts) if facts else []
            if facts is not None:
                self._seat(addresses, bus)
            results = self._read(addresses, facts, until)
            self._watch(results, bus, facts)
            return self._frame(results, bus, facts, {"memory_of_gpus": self._census.trouble(), **(node_features or {})})

    def release(self) -> bool:
        """Gives the devices up: no device file stays open. Whether that is done; if not, a call hangs in the driver
        and it will be done as soon as that ends."""
        with self._lock:
            self._released = True
            return self._shut("released", CLOSE_SECONDS)

    def resume(self) -> None:
        """Takes them up again with the next cycle."""
        with self._lock:
            self._released = False

    def close(self) -> None:
        """Shuts the library and ends the threads; those that hang are left to the end of the process."""
        with self._lock:
            self._shut("closed", CLOSE_SECONDS)
            for seat in self._seats.values():
                seat.stop()
            self._session.stop()
            self._census.close()

    # The library.

    def _open(self, until: float) -> Facts | None:
        """Facts of the open library, or None; sees to a release that could not be done at once."""
        if self._released:
            self._session.close("released", max(0.0, until - time.monotonic()))
            return None
        if self._reopen:
            self._reopen = False
            self._shut("reopening", 0.1)
        self._session.ensure(until)
        return self._session.facts

    def _shut(self, reason: str, seconds: float) -> bool:
        for each in self.before_close:
            each()
        until = time.monotonic() + seconds
        for seat in self._seats.values():
            seat.cancel()
        idle = [seat.close(until) for seat in self._seats.values()]
        return self._session.close(reason, seconds) and all(idle)

    def _watch(self, results: Results, bus: Bus, facts: Facts | None) -> None:
        """Shuts the library when the driver went away; plans it when it lacks a device that the kernel lists."""
        if facts is None:
            return
        downs = [each.down for each in results.values()]
        if "driver_gone" in downs:
            self._shut("driver_gone", 0.1)
            self._session.wait_longer("driver_gone")
            return
        for address, result in results.items():
            if isinstance(address, str) and result.reading is not None and result.down is None:
                # Shutting the library is the only way to close one device's file; the others are opened at once.
                self._reopen |= self._rest.used(address, in_use(result.reading))
        self._reopen |= self._reopening.due("not_listed" in downs or len(bus.listed or ()) > (facts.count or 0))

    # The devices.

    def _addresses(self, bus: Bus, facts: Facts) -> list[Address]:
        """What to ask for: devices by their place on the bus, so that sleeping ones are left alone; by number where
        the bus does not show them all (some virtual machines and boards)."""
        slots, count = bus.slots or (), facts.count or 0
        if not slots or (count > len(slots) and not self._resting and not any(slot.suspended for slot in slots)):
            return list(range(count))
        awake = (slot for slot in slots if slot.driver is not None and not slot.suspended)
        return [slot.pci_bus_id for slot in awake if slot.pci_bus_id not in self._resting]

    def _seat(self, addresses: list[Address], bus: Bus) -> None:
        """Seats for new devices; those that sleep keep theirs, those that left the bus lose it."""
        for address in addresses:
            if address not in self._seats:
                self._seats[address] = Seat(
                    address, self._groups, 1.5 * self._settings.interval + self._settings.device_timeout
                )
        here = {*addresses, *(slot.pci_bus_id for slot in bus.slots or ())}
        for address in [each for each in self._seats if each not in here]:
            seat = self._seats[address]
            seat.cancel()
            if seat.close(0.0):  # while a call hangs it keeps its seat, or threads would pile up
                seat.stop()
                self._accounts.retire(self._seats.pop(address))

    def _read(self, addresses: list[Address], facts: Facts | None, until: float) -> dict[Address, Result]:
        for address, seat in self._seats.items():
            if facts is None or address not in addresses:
                seat.rest()
        if facts is None:
            return {}
        generation = self._session.generation
        for address in addresses:
            self._seats[address].start(generation, facts.driver_version)
        return {address: self._seats[address].result(generation, until) for address in addresses}

    # The frame.

    def _frame(self, results: Results, bus: Bus, facts: Facts | None, node_features: Mapping[str, str]) -> Frame:
        told = {address: (self._who(address, result), result) for address, result in results.items()}
        roll = self._census.call(told, bus, lambda slot: self._why(slot, results, facts), self._clock.now().timestamp())
        by_uuid = {who.uuid: result for who, result in told.values() if who is not None}
        devices = tuple(with_features_off(each, by_uuid.get(each.identity.uuid)) for each in roll.frames)
        session = self._session
        counted = session.reason not in ("released", "opening", "reopening", "hung")
        values: list[Value] = [Value(of.COLLECTING, (), 0 if self._released else 1)]
        values += self._census.values(roll, bus, session.facts.count if session.facts else None, counted)
        values += self._accounts.values(session, self._seats.values())
        states = features(results.values(), self._disabled, node_features)
        lines = notes(session.reason, devices, roll.unidentified, states)
        return Frame(self._settings.node, devices, (*values, *states), notes=lines)

    def _who(self, address: Address, result: Result) -> Identity | None:
        """As read now, else as read before at this address."""
        identity = (result.reading.identity if result.reading else None) or self._seats[address].identity
        return at_slot(identity, address) if identity and isinstance(address, str) else identity

    def _why(self, slot: Slot | None, results: Results, facts: Facts | None) -> str:
        """Why a device on the bus was not read in this cycle; slot None: a device that was here once."""
        result = results.get(slot.pci_bus_id) if slot is not None else None
        if result is not None and result.down is not None:
            return result.down
        if facts is None:
            return self._session.reason
        if slot is None:
            return "gone"
        if slot.suspended:
            return "suspended"
        if slot.driver is None:
            return "unbound"
        return "resting" if slot.pci_bus_id in self._resting else "not_listed"
