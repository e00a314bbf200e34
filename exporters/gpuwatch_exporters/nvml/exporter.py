"""The NVML exporter as the serving room sees it: a cycle is a frame, who holds its devices, and the text of both."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.device.render import render_frame
from gpuwatch_exporters.holders import Holders, HolderSettings
from gpuwatch_exporters.nvml import HELP
from gpuwatch_exporters.nvml.accounts import open_device_files
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.settings import Settings
from gpuwatch_exporters.nvml.xid.xids import Xids
from gpuwatch_exporters.serving.exporter import Exporter

log = logging.getLogger(__name__)


class NvmlExporter(Exporter):
    """Owns the collector and the sources of holders. RegistryError for an unknown name in settings.compats."""

    name: ClassVar[str] = "nvml"
    help: ClassVar[str] = HELP

    def __init__(self, settings: Settings, holders: HolderSettings) -> None:
        self._compats = [COMPATS.get(name) for name in settings.compats]
        self._holders = Holders(holders)
        self._xids = Xids(settings.disabled, settings.kernel_log)
        self._collector = Collector(settings)
        self._collector.before_close.append(self._xids.pause)
        self._notes: tuple[str, ...] = ()

    def cycle(self) -> str:
        frame = self.frame()
        self._notes = frame.notes
        return render_frame(frame) + "".join(compat.render(frame) for compat in self._compats)

    def frame(self) -> Frame:
        """One cycle as values."""
        self._xids.start()
        frame = self._with_xids(self._collector.collect({**self._holders.states(), **self._xids.features()}))
        workloads, values = self._holders.read(frame, time.monotonic())
        return replace(frame, values=(*frame.values, *values), workloads=workloads)

    def _with_xids(self, frame: Frame) -> Frame:
        """Devices that are down have theirs too: an XID is often the last word of a lost GPU."""
        if not self._collector.released:
            self._xids.watch(each.identity.pci_bus_id for each in frame.devices if each.up)
        devices = tuple(
            replace(each, values=(*each.values, *self._xids.values(each.identity.pci_bus_id))) for each in frame.devices
        )
        known = {each.identity.pci_bus_id for each in frame.devices}
        return replace(frame, devices=devices, values=(*frame.values, *self._xids.node_values(known)))

    def notes(self) -> list[str]:
        return [*self._notes, *self._holders.notes()]

    def actions(self) -> Mapping[str, Callable[[], str]]:
        return {"release": self._release, "resume": self._resume}

    def close(self) -> None:
        self._holders.close()
        self._collector.close()
        self._xids.close()

    def _release(self) -> str:
        done, held = self._collector.release(), open_device_files()
        log.info("released on request; device files open: %s", "unknown" if held is None else held)
        if done and not held:
            return "released: no device file is open"
        return "releasing: a call hangs in the driver; the device files are closed as soon as it ends"

    def _resume(self) -> str:
        self._collector.resume()
        log.info("resumed on request")
        return "resumed: the devices are read again with the next cycle"
