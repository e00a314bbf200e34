"""The listening socket in the loop: takes who comes, and rests when the machine has nothing left to take them with."""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import time
from collections.abc import Iterator

log = logging.getLogger(__name__)
_AT_ONCE = 64
_REST_SECONDS = 1.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Door:
    """`listener` registered with `selector`. Used by the loop's thread alone."""

    def __init__(self, listener: socket.socket, selector: selectors.BaseSelector) -> None:
        self.listener = listener
        self._selector = selector
        self._rests_until: float | None = None
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)

    def come(self) -> Iterator[socket.socket]:
        """The connections that wait, non-blocking."""
        for _ in range(_AT_ONCE):
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            except OSError as err:
                if err.errno in _EXHAUSTED:
                    self._rest(err)
                return
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sock

    def open_again(self) -> None:
        """Ends a rest that is over."""
        if self._rests_until is not None and time.monotonic() >= self._rests_until:
            self._rests_until = None
            self._selector.register(self.listener, selectors.EVENT_READ)

    @property
    def rests(self) -> bool:
        """Nobody is taken for the moment."""
        return self._rests_until is not None

    def _rest(self, err: OSError) -> None:
        """A listener that cannot be emptied would be ready for ever, and the loop would do nothing else."""
        log.warning("no connection can be taken: %s", err.strerror)
        self._selector.unregister(self.listener)
        self._rests_until = time.monotonic() + _REST_SECONDS
