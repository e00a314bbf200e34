"""Where slurmrestd is, and what may be sent to it."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import SplitResult, urlsplit

from gpuwatch.errors import SettingsError


def address(url: str) -> SplitResult:
    """The parts of an address. SettingsError when it is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # read late, and refused then
        good = bool(parts.path and not parts.netloc if parts.scheme == "unix" else parts.hostname)
    except ValueError:
        good = False
    if "@" in url:  # not echoed: what is before it may be a password
        raise SettingsError("the address of slurmrestd holds a user or password", todo="give a token by --token-file")
    if not good or parts.scheme not in ("unix", "http", "https"):
        raise SettingsError(f"{url!r} is no address of slurmrestd", todo="unix:/path, http://host:port or https://...")
    return parts


def fits_a_header(text: str) -> bool:
    """Whether a line of HTTP can hold the text."""
    return text.isascii() and (text.isprintable() or not text)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the Unix socket at `path`."""

    def __init__(self, path: str, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
