"""Work that a request asks for and that takes longer than a scrape may wait: a password's hash, a release."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from gpuwatch_exporters.serving.web.message import Response

log = logging.getLogger(__name__)
_WAITING = 16


class SlowLane:
    """One daemon thread, begun when first needed, with a short queue: a flood of it is refused, not stored."""

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[Callable[[], Response], Callable[[Response], None]]] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None

    def give(self, work: Callable[[], Response], done: Callable[[Response], None]) -> bool:
        """Has `work` done and its answer given to `done`, on the thread; False when too much waits already."""
        try:
            self._queue.put_nowait((work, done))
        except queue.Full:
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="http-slow", daemon=True)
            self._thread.start()
        return True

    def _run(self) -> None:
        while True:
            work, done = self._queue.get()
            try:
                found = work()
            except Exception:
                log.exception("fault while answering")
                found = Response(500, b"internal error\n")
            done(found)
