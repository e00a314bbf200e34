"""Work that a request asks for and that takes longer than a scrape may wait: a password's hash, a release."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from gpuwatch_exporters.serving.web.message import Response

log = logging.getLogger(__name__)
_WAITING = 16
_THREADS = 2
Asker = TypeVar("Asker")


class SlowLane(Generic[Asker]):
    """Two daemon threads, begun when first needed, with a short queue: a flood of it is refused, not stored. Two, so
    that one work that hangs does not hold up the others.

    `woken` is a socket that becomes readable when there is something to `take`, or when `wake` is called.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[Callable[[], Response], Asker]] = queue.Queue(_WAITING)
        self._done: deque[tuple[Asker, Response]] = deque()
        self._threads: list[threading.Thread] = []
        self._waker, self.woken = socket.socketpair()
        self._waker.setblocking(False)
        self.woken.setblocking(False)

    def give(self, work: Callable[[], Response], asker: Asker) -> bool:
        """Has `work` done for `asker`; False when too much waits already."""
        try:
            self._queue.put_nowait((work, asker))
        except queue.Full:
            return False
        if len(self._threads) < _THREADS:
            self._threads.append(threading.Thread(target=self._run, name="http-slow", daemon=True))
            self._threads[-1].start()
        return True

    def take(self) -> list[tuple[Asker, Response]]:
        """What was done since the last call."""
        with contextlib.suppress(BlockingIOError):
            self.woken.recv(4096)
        return [self._done.popleft() for _ in range(len(self._done))]

    def wake(self) -> None:
        """Makes `woken` readable."""
        with contextlib.suppress(OSError):  # full: it is readable already; closed: nobody listens
            self._waker.send(b"\0")

    def close(self) -> None:
        """Frees the sockets; the threads, which may be busy for long, end with the process."""
        self._waker.close()
        self.woken.close()

    def _run(self) -> None:
        while True:
            work, asker = self._queue.get()
            try:
                found = work()
            except Exception:
                log.exception("fault while answering")
                found = Response(500, b"internal error\n")
            self._done.append((asker, found))
            self.wake()
