"""Both witnesses and their book, as the exporter uses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.xid.book import XidBook
from gpuwatch_exporters.nvml.xid.events import EventWatcher
from gpuwatch_exporters.nvml.xid.kernel_log import KernelLog

EVENTS, KERNEL_LOG = "xid_events", "kernel_log"  # ids of the two features, for --disable and the features metric
KERNEL_LOG_PATH = Path("/dev/kmsg")


class Xids:
    """Counts XIDs from the events and the kernel log, each unless disabled.

    In each cycle: `watch` the devices that may be asked, then take `values` and `node_values`. `pause` goes before the
    library is shut; the next `watch` goes on. The counts stay as long as the object does.
    """

    def __init__(
        self,
        disabled: Collection[str] = (),
        kernel_log: Path = KERNEL_LOG_PATH,
        now: Callable[[], float] = time.time,
    ) -> None:
        """now: Unix time in seconds."""
        self._book = XidBook()
        self._events = None if EVENTS in disabled else EventWatcher(self._book, now)
        self._log = None if KERNEL_LOG in disabled else KernelLog(self._book, kernel_log, now)

    def start(self) -> None:
        """Begins to read the kernel log, which needs no driver."""
        if self._log is not None:
            self._log.start()

    def watch(self, pci_bus_ids: Iterable[str]) -> None:
        """Devices that answer in this cycle. Does not wait; never for sleeping ones: it opens them."""
        if self._events is not None:
            self._events.watch(pci_bus_ids)

    def pause(self) -> None:
        """Lets go of the library; waits for a second at most."""
        if self._events is not None:
            self._events.stop()

    def close(self) -> None:
        """Ends both threads, within two seconds."""
        self.pause()
        if self._log is not None:
            self._log.stop()

    def features(self) -> dict[str, str]:
        """Why each of the two is off, "" for on."""
        return {
            EVENTS: "disabled" if self._events is None else self._events.reason,
            KERNEL_LOG: "disabled" if self._log is None else self._log.reason,
        }

    def values(self, pci_bus_id: str) -> list[Value]:
        """Values of the device at this address (0000:18:00.0), whether it is lost or not."""
        return self._book.values(pci_bus_id, watched="" in self.features().values())

    def node_values(self, known: Collection[str]) -> list[Value]:
        """Values of the node; known: the addresses that `values` is asked for."""
        return self._book.node_values(known) + (self._log.values() if self._log is not None else [])
