"""The DCGM exporter as the serving room sees it: a cycle is a frame, who holds its devices, and the text of both."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from gpuwatch_exporters.dcgm import HELP
from gpuwatch_exporters.dcgm.collector import Collector
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.device.render import render_frame
from gpuwatch_exporters.holders import Holders, HolderSettings
from gpuwatch_exporters.serving.exporter import Exporter

log = logging.getLogger(__name__)


class DcgmExporter(Exporter):
    """Owns the collector and the sources of holders. SettingsError when DCGM is not here, RegistryError for an
    unknown name in settings.compats."""

    name: ClassVar[str] = "dcgm"
    help: ClassVar[str] = HELP

    def __init__(self, settings: Settings, holders: HolderSettings) -> None:
        self._compats = [COMPATS.get(name) for name in settings.compats]
        self._collector = Collector(settings)
        self._holders = Holders(holders)
        self._notes: tuple[str, ...] = ()

    def cycle(self) -> str:
        frame = self.frame()
        self._notes = frame.notes
        return render_frame(frame) + "".join(compat.render(frame) for compat in self._compats)

    def frame(self) -> Frame:
        """One cycle as values."""
        frame = self._collector.collect(self._holders.states())
        workloads, values = self._holders.read(frame, time.monotonic())
        return replace(frame, values=(*frame.values, *values), workloads=workloads)

    def notes(self) -> list[str]:
        return [*self._notes, *self._holders.notes()]

    def actions(self) -> Mapping[str, Callable[[], str]]:
        return {"release": self._release, "resume": self._resume}

    def close(self) -> None:
        self._holders.close()
        self._collector.close()

    def _release(self) -> str:
        done = self._collector.release()
        log.info("released on request")
        if not done:
            return "releasing: a call to the host engine hangs; it is released as soon as that ends"
        return "released: nothing is watched; what another host engine holds open is its own matter"

    def _resume(self) -> str:
        self._collector.resume()
        log.info("resumed on request")
        return "resumed: the devices are read again with the next cycle"
