"""What systemd is told over its notification socket, in its own datagrams."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends to NOTIFY_SOCKET; does nothing where there is none. A message that cannot be sent is dropped."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        address = environment.get("NOTIFY_SOCKET", "")
        self._address: str | None = None
        if address.startswith(("/", "@")):  # "@": in the abstract namespace
            self._address = "\0" + address[1:] if address[0] == "@" else address
        self.watchdog_seconds = self._watchdog(environment)
        self._status = ""

    def send(self, *lines: str) -> None:
        """One datagram of NAME=value lines."""
        if self._address is None:
            return
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sock:
            sock.sendto("\n".join(lines).encode(), self._address)

    def status(self, told: str) -> None:
        """The line that systemctl shows; sent when it changes."""
        told = " ".join(told.split())[:200]
        if told != self._status:
            self._status = told
            self.send(f"STATUS={told}")

    def _watchdog(self, environment: Mapping[str, str]) -> float | None:
        """Time within which a sign of life is awaited, None when nobody waits for one of this process."""
        told, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        if self._address is None or not told.isdecimal() or int(told) == 0:
            return None
        return int(told) / 1e6 if pid in ("", str(os.getpid())) else None
