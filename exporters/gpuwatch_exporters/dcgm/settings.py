"""What the DCGM exporter can be told, apart from how it is served and who holds the devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DAY_SECONDS = 86400.0
DEFAULT_ADDRESS = "localhost:5555"
SOCKET_PREFIX = "unix:"
_LOCAL = ("localhost", "127.", "[::1]", "::1")


@dataclass(frozen=True, slots=True)
class Settings:
    """hostengine: HOST:PORT or unix:PATH, not used when embedded. bindings, library: folders, None for the usual
    places. interval: seconds between cycles, and between two samples of DCGM. disabled: topics that are not watched."""

    node: str
    hostengine: str = DEFAULT_ADDRESS
    embedded: bool = False
    bindings: Path | None = None
    library: Path | None = None
    interval: float = 10.0
    disabled: frozenset[str] = frozenset()
    compats: tuple[str, ...] = ()
    sysfs: Path = Path("/sys")
    state_file: Path | None = None
    forget_seconds: float | None = 30 * DAY_SECONDS

    @property
    def is_socket(self) -> bool:
        """Whether the host engine listens on a socket of this host."""
        return self.hostengine.startswith(SOCKET_PREFIX)

    @property
    def address(self) -> str:
        """What DCGM takes: HOST:PORT or a path."""
        return self.hostengine.removeprefix(SOCKET_PREFIX)

    @property
    def is_local(self) -> bool:
        """Whether the host engine's GPUs are this host's."""
        return self.embedded or self.is_socket or self.hostengine.startswith(_LOCAL)

    @property
    def longest_wait(self) -> float:
        """Seconds between two tries to connect, at most: values are back within two cycles."""
        return max(1.0, 2 * self.interval - 0.5)

    def told(self) -> str:
        """Where the host engine is, for people."""
        return "a host engine in this process" if self.embedded else self.hostengine
