"""Signals as values that the main thread waits for."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections import deque
from types import FrameType

WATCHED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")


class SignalBox:
    """Collects the watched signals. Made on the main thread, before others begin.

    The signals are not blocked: a blocked one would stay blocked in every program that an exporter starts.
    """

    def __init__(self) -> None:
        self._came: deque[str] = deque()
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        # Wakes the select below whichever thread the system hands the signal to.
        signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        for name in WATCHED:
            signal.signal(getattr(signal, name), self._note)

    def wait(self, seconds: float) -> str | None:
        """The name of the next signal, None when none came in that time."""
        if not self._came:
            select.select([self._read], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self._read.recv(4096)
        return self._came.popleft() if self._came else None

    def exit_at_the_next_one(self) -> None:
        """From here on SIGTERM or SIGINT ends the process at once, with the code that a shell expects."""
        for name in ("SIGTERM", "SIGINT"):
            signal.signal(getattr(signal, name), lambda number, _: os._exit(128 + number))

    def _note(self, number: int, _: FrameType | None) -> None:
        self._came.append(signal.Signals(number).name)
