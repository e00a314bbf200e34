"""The GPUs that the kernel driver lists under /proc/driver/nvidia/gpus, and who they say they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Listed:
    """What the driver's own page tells of a GPU; "" and None where it does not."""

    uuid: str = ""
    model: str = ""
    minor: int | None = None


class DriverList:
    """Reads `procfs` (/proc). A GPU's page is read once, until the driver lists it anew."""

    def __init__(self, procfs: Path) -> None:
        self._folder = procfs / "driver" / "nvidia" / "gpus"
        self._known: dict[str, Listed] = {}

    def read(self) -> frozenset[str] | None:
        """Addresses (0000:18:00.0) of the GPUs listed; None where there is no such list: no driver, or not shown."""
        try:
            names = frozenset(os.listdir(self._folder))
        except OSError:
            names = None
        for gone in self._known.keys() - (names or frozenset()):
            del self._known[gone]
        return names

    def identify(self, pci_bus_id: str) -> Listed:
        """What the page of this GPU tells. Until the driver has opened a GPU its uuid is question marks: not a uuid."""
        known = self._known.get(pci_bus_id)
        if known is None:
            known = _page(self._folder / pci_bus_id / "information")
            if known.uuid:
                self._known[pci_bus_id] = known
        return known


def _page(path: Path) -> Listed:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Listed()
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    uuid, minor = told.get("GPU UUID", ""), told.get("Device Minor", "")
    return Listed(
        uuid if uuid.startswith("GPU-") and "?" not in uuid else "",
        told.get("Model", ""),
        int(minor) if minor.isdigit() else None,
    )
