"""The NVML exporter as the serving room sees it: the collector's frame, and the XIDs that come by other ways."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.device_exporter import DeviceExporter
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml import HELP
from gpuwatch_exporters.nvml.accounts import open_device_files
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.settings import Settings
from gpuwatch_exporters.nvml.xid.xids import Xids

log = logging.getLogger(__name__)


class NvmlExporter(DeviceExporter):
    """Owns the collector and the XIDs too."""

    name: ClassVar[str] = "nvml"
    help: ClassVar[str] = HELP

    def __init__(self, settings: Settings, holders: HolderSettings) -> None:
        super().__init__(settings.compats, holders)
        self._xids = Xids(settings.disabled, settings.kernel_log)
        self._collector = Collector(settings)
        self._collector.before_close.append(self._xids.pause)

    def collect(self, sources: Mapping[str, str]) -> Frame:
        self._xids.start()
        return self._with_xids(self._collector.collect({**sources, **self._xids.features()}))

    def _with_xids(self, frame: Frame) -> Frame:
        """Devices that are down have theirs too: an XID is often the last word of a lost GPU."""
        if not self._collector.released:
            self._xids.watch(each.identity.pci_bus_id for each in frame.devices if each.up)
        devices = tuple(
            replace(each, values=(*each.values, *self._xids.values(each.identity.pci_bus_id))) for each in frame.devices
        )
        known = {each.identity.pci_bus_id for each in frame.devices}
        return replace(frame, devices=devices, values=(*frame.values, *self._xids.node_values(known)))

    def release(self) -> str:
        done, held = self._collector.release(), open_device_files()
        log.info("released on request; device files open: %s", "unknown" if held is None else held)
        if done and not held:
            return "released: no device file is open"
        return "releasing: a call hangs in the driver; the device files are closed as soon as it ends"

    def resume(self) -> None:
        self._collector.resume()

    def close(self) -> None:
        super().close()
        self._collector.close()
        self._xids.close()
