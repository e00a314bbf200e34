"""Lets a GPU fall asleep that may: the open device file of an exporter alone would keep it awake for ever.

Only devices whose runtime power management is on ("auto": laptops, workstations) are concerned. One that nobody used
for a while is left alone, its device file closed. It falls asleep then, or something else keeps it awake: then it is
read again, and left alone ever more seldom.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from gpuwatch_exporters.device.families.processes import STALE
from gpuwatch_exporters.device.families.utilization import UTILIZATION
from gpuwatch_exporters.node.pci import Slot
from gpuwatch_exporters.nvml.reader import Reading

IDLE_SECONDS = 60.0  # without a process, before it is left alone
REST_SECONDS = 60.0  # for which it is left alone to fall asleep
LONGEST_IDLE_SECONDS = 3600.0


@dataclass(slots=True)
class _State:
    used_at: float
    patience: float
    resting_until: float | None = None


class Rest:
    """By PCI address. Times are monotonic seconds."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle = idle_seconds
        self._states: dict[str, _State] = {}

    def look(self, slots: Iterable[Slot], now: float | None = None) -> frozenset[str]:
        """Addresses of the devices that are to be left alone in this cycle."""
        now = time.monotonic() if now is None else now
        sleepers = {slot.pci_bus_id: slot for slot in slots if slot.may_sleep}
        for address in self._states.keys() - sleepers.keys():
            del self._states[address]
        for address, slot in sleepers.items():
            state = self._states.setdefault(address, _State(now, self._idle))
            if slot.suspended:
                self._states[address] = _State(now, self._idle)  # it works: the same patience next time
            elif state.resting_until is not None and now >= state.resting_until:
                state.resting_until, state.used_at = None, now  # something else keeps it awake
                state.patience = min(2 * state.patience, LONGEST_IDLE_SECONDS)
        return frozenset(address for address, state in self._states.items() if state.resting_until is not None)

    def used(self, address: str, in_use: bool, now: float | None = None) -> bool:
        """Told of each reading; whether the device is to be left alone from now on, its file closed."""
        state = self._states.get(address)
        if state is None:
            return False
        now = time.monotonic() if now is None else now
        if in_use:
            state.used_at = now
        elif now - state.used_at >= state.patience:
            state.resting_until = now + REST_SECONDS
            return True
        return False


def in_use(reading: Reading) -> bool:
    """Whether anybody uses the device: by its processes, those that this /proc does not show too, or by its work."""
    signs = (STALE, UTILIZATION)
    return bool(reading.processes) or any(each.family in signs and each.number > 0 for each in reading.values)
