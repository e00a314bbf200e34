"""What every exporter of devices does in a cycle, whichever library tells of them: a frame, its holders, its text."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.device.render import render_frame
from gpuwatch_exporters.holders import Holders, HolderSettings
from gpuwatch_exporters.serving.exporter import Exporter

log = logging.getLogger(__name__)


class DeviceExporter(Exporter):
    """Owns the sources of holders and the names of other exporters. RegistryError for an unknown one in compats."""

    def __init__(self, compats: Iterable[str], holders: HolderSettings) -> None:
        self._compats = [COMPATS.get(name) for name in compats]
        self._holders = Holders(holders)
        self._notes: tuple[str, ...] = ()

    @abstractmethod
    def collect(self, sources: Mapping[str, str]) -> Frame:
        """One cycle without holders. sources: why each source of holders is off, "" for on."""

    @abstractmethod
    def release(self) -> str:
        """Lets go of the devices; the line that says how far that went."""

    @abstractmethod
    def resume(self) -> None:
        """Takes them again with the next cycle."""

    def frame(self) -> Frame:
        """One cycle as values."""
        frame = self.collect(self._holders.states())
        workloads, values = self._holders.read(frame, time.monotonic())
        return replace(frame, values=(*frame.values, *values), workloads=workloads)

    def cycle(self) -> str:
        frame = self.frame()
        self._notes = frame.notes
        return render_frame(frame) + "".join(compat.render(frame) for compat in self._compats)

    def notes(self) -> list[str]:
        return [*self._notes, *self._holders.notes()]

    def actions(self) -> Mapping[str, Callable[[], str]]:
        return {"release": self.release, "resume": self._resume}

    def close(self) -> None:
        self._holders.close()

    def _resume(self) -> str:
        self.resume()
        log.info("resumed on request")
        return "resumed: the devices are read again with the next cycle"
