"""What the server is given: the answers of its handler, and the settings of the web configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gpuwatch_exporters.serving.web.message import Response

if TYPE_CHECKING:
    import ssl

Answer = Response | Callable[[], Response]  # a callable may be slow, and is called on another thread


class Settings(Protocol):
    """What is asked before each connection and answer."""

    generation: int  # rises when the configuration changes
    tls: ssl.SSLContext | None
    header_lines: bytes

    def refresh(self) -> None:
        """Looks for a changed file; cheap when there is none."""
        ...

    def admits(self, sock: ssl.SSLSocket) -> bool:
        """Whether the certificate of a client whose handshake is done is one of those let in."""
        ...
