"""What the serving room asks of an exporter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar


class Exporter(ABC):
    """One exporter. `cycle` runs on one thread, at most once per interval; everything else may come from any thread."""

    name: ClassVar[str]  # of the subcommand, in the landing page and logs
    help: ClassVar[str]

    @abstractmethod
    def cycle(self) -> str:
        """Collects once and returns the page as text. A GpuwatchError or any other exception is a failed cycle: it is
        counted and logged once per kind, and the page served meanwhile holds no values of earlier cycles."""

    def notes(self) -> list[str]:
        """Lines for the landing page: what was found, what is off and why."""
        return []

    def actions(self) -> Mapping[str, Callable[[], str]]:
        """POST /-/NAME -> what it does, returning the one line that is answered (release and resume of nvml). They
        are also called by signals: release on SIGUSR1, resume on SIGUSR2."""
        return {}

    def close(self) -> None:  # noqa: B027  # most have nothing to free
        """Frees everything; called once, and must not wait longer than a second or two."""
