"""Service without a web configuration file: plain HTTP, everybody may read, nobody is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuwatch_exporters.serving.web.message import Request

if TYPE_CHECKING:
    import ssl


class OpenAccess:
    """Settings of the server and guard of the routes, both empty."""

    generation = 0
    tls: ssl.SSLContext | None = None
    header_lines = b""

    def refresh(self) -> None:
        """There is no file."""

    def reload(self) -> bool:
        """There is no file."""
        return True

    def admits(self, sock: ssl.SSLSocket) -> bool:
        """Nobody shows a certificate."""
        return True

    def allows(self, request: Request) -> bool:
        """Everybody may read."""
        return True

    def too_many(self) -> bool:
        """There is no limit."""
        return False

    def knows(self, request: Request) -> bool:
        """Nobody proves who they are."""
        return False
