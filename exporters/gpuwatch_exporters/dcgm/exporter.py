"""The DCGM exporter as the serving room sees it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from gpuwatch_exporters.dcgm import HELP
from gpuwatch_exporters.dcgm.collector import Collector
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.device_exporter import DeviceExporter
from gpuwatch_exporters.holders import HolderSettings

log = logging.getLogger(__name__)


class DcgmExporter(DeviceExporter):
    """Owns the collector too. SettingsError when DCGM is not here."""

    name: ClassVar[str] = "dcgm"
    help: ClassVar[str] = HELP

    def __init__(self, settings: Settings, holders: HolderSettings) -> None:
        super().__init__(settings.compats, holders)
        self._collector = Collector(settings)

    def collect(self, sources: Mapping[str, str]) -> Frame:
        return self._collector.collect(sources)

    def release(self) -> str:
        done = self._collector.release()
        log.info("released on request")
        if not done:
            return "releasing: a call to the host engine hangs; it is released as soon as that ends"
        return "released: nothing is watched; what another host engine holds open is its own matter"

    def resume(self) -> None:
        self._collector.resume()

    def close(self) -> None:
        super().close()
        self._collector.close()
