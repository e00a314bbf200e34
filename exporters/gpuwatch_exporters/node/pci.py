"""NVIDIA GPUs on the PCI bus, as sysfs lists them: which driver holds each, and whether it sleeps."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VENDOR = "0x10de"
# Class code without its last two digits: VGA controller, 3D controller. NVSwitches are bridges, audio parts 0x0403.
GPU_CLASSES = ("0x0300", "0x0302")
# Kernel drivers under which a GPU belongs to this node. Bound to another one (vfio-pci, nouveau) it is somebody else's.
OWN_DRIVERS = (None, "nvidia")


@dataclass(frozen=True, slots=True)
class Slot:
    """One GPU on the bus. driver: the kernel driver that holds it, None for none. runtime_status: the kernel's word
    (active, suspended, ...), None where it is not told. may_sleep: the kernel may suspend it when nobody uses it."""

    pci_bus_id: str
    driver: str | None = None
    runtime_status: str | None = None
    may_sleep: bool = False

    @property
    def suspended(self) -> bool:
        """Asleep or on its way: a call to it would wake it up."""
        return self.runtime_status in ("suspended", "suspending")


class PciScan:
    """Reads the bus of `sysfs` (/sys). Names are listed each time; what a device is, is read once per device."""

    def __init__(self, sysfs: Path) -> None:
        self._devices = sysfs / "bus" / "pci" / "devices"
        self._names: list[str] = []
        self._gpus: list[str] = []

    def read(self) -> tuple[Slot, ...] | None:
        """GPUs of this node by address; None where sysfs does not tell (absent, unreadable): unknown, not none."""
        try:
            names = sorted(os.listdir(self._devices))
        except OSError:
            return None
        if names != self._names:
            self._names, self._gpus = names, [name for name in names if self._is_gpu(name)]
        slots = (self._slot(name) for name in self._gpus)
        return tuple(slot for slot in slots if slot.driver in OWN_DRIVERS)

    def _is_gpu(self, name: str) -> bool:
        folder = self._devices / name
        if _text(folder / "vendor") != VENDOR or (folder / "physfn").is_symlink():
            return False  # physfn: a virtual function, lent to virtual machines
        return (_text(folder / "class") or "")[:6] in GPU_CLASSES

    def _slot(self, name: str) -> Slot:
        folder = self._devices / name
        try:
            driver = os.path.basename(os.readlink(folder / "driver"))
        except OSError:
            driver = None
        power = folder / "power"
        return Slot(name, driver, _text(power / "runtime_status"), _text(power / "control") == "auto")


def kernel_address(pci_bus_id: str) -> str:
    """The kernel's spelling of an address: "00000000:3B:00.0" -> "0000:3b:00.0". Longer domains keep their digits."""
    domain, colon, rest = pci_bus_id.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}{colon}{rest}" if colon and rest.count(":") == 1 else pci_bus_id.lower()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
