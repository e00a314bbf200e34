"""One thread per device: a call that never returns holds up its own device and nothing else.

A thread that hangs in the library cannot be stopped; it is left alone and gets no further work until it returns, so
that there is never more than one per device.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Work(Generic[T]):
    """One piece of work: done() tells whether it has ended, then `value` or `error` is set. Each is taken once."""

    def __init__(self, job: Callable[[], T], started: float) -> None:
        self.started = started  # monotonic seconds
        self.seconds: float | None = None
        self.value: T | None = None
        self.error: BaseException | None = None
        self._job = job
        self._end = threading.Event()

    def done(self) -> bool:
        """Whether it has ended."""
        return self._end.is_set()

    def wait(self, until: float) -> bool:
        """Waits for the end, at most until this monotonic time; whether it has ended."""
        return self._end.wait(max(0.0, until - time.monotonic()))

    def run(self) -> None:
        """Does it, on the worker's thread."""
        try:
            self.value = self._job()
        except BaseException as err:  # told to whoever asks for the result: the thread itself must live on
            self.error = err
        self.seconds = time.monotonic() - self.started
        self._end.set()


class Worker(Generic[T]):
    """A thread that does one piece of work at a time."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[Work[T] | None] = queue.SimpleQueue()
        self._last: Work[T] | None = None
        # A daemon: a thread that hangs in the library must not keep the process from ending.
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    @property
    def busy_seconds(self) -> float | None:
        """How long the present work has been going on; None when there is none."""
        last = self._last
        return None if last is None or last.done() else time.monotonic() - last.started

    def start(self, job: Callable[[], T]) -> Work[T] | None:
        """Hands over work; None while earlier work goes on. Called from one thread only."""
        if self.busy_seconds is not None:
            return None
        self._last = Work(job, time.monotonic())
        self._queue.put(self._last)
        return self._last

    def stop(self) -> None:
        """Ends the thread after its present work. Does not wait."""
        self._queue.put(None)

    def join(self, seconds: float) -> bool:
        """Waits for the thread's end; whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while (work := self._queue.get()) is not None:
            work.run()
            del work  # else the last result stays in memory until the next
