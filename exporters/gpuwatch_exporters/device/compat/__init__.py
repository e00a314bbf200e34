"""Other exporters' names for the same frame, one file per vocabulary: --compat NAME."""

from __future__ import annotations

from typing import Protocol

from gpuwatch.registry import Registry
from gpuwatch_exporters.device.frame import Frame


class Compat(Protocol):
    """Prints a frame in another exporter's words: names, labels, units."""

    @property
    def help(self) -> str:
        """One line: whose names these are."""
        ...

    def render(self, frame: Frame) -> str:
        """Text of the extra families, each with HELP and TYPE; none of our own names."""
        ...


COMPATS: Registry[Compat] = Registry("compatibility vocabulary", package=__name__)
