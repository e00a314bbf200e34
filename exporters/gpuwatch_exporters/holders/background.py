"""Asks one source on a thread of its own, so that a source that hangs holds up neither a cycle nor the exit."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from gpuwatch_exporters.holders.holding import LookError, SourceOffError

log = logging.getLogger(__name__)


class Answer(Protocol):
    """What a look returns."""

    @property
    def failures(self) -> Mapping[str, int]:
        """What it could not tell, how often, by reason."""
        ...


Work = TypeVar("Work")
Result = TypeVar("Result", bound=Answer)


class Background(Generic[Work, Result]):
    """`look(work)` on one daemon thread, never twice at a time, at most once per `every` seconds.

    Asked from one thread only. Times are seconds on the asker's clock, of which only differences mean something; a
    result is as old as the question that it answers. A look that hangs is left alone: there is no second thread.
    """

    def __init__(self, name: str, look: Callable[[Work], Result], every: float, max_age: float) -> None:
        self.name = name
        self._look, self._every, self._max_age = look, every, max_age
        self._lock = threading.Condition()
        self._work: tuple[Work, float] | None = None  # waits for the thread
        self._busy = self._closed = False
        self._asked_at: float | None = None
        self._result: tuple[Result, float] | None = None
        self._reason = "waiting"
        self._fresh = False  # the look under way began in this cycle: only then is it waited for
        self._thread: threading.Thread | None = None
        self._note = ""
        self._failures: Counter[str] = Counter()

    def ask(self, work: Work, now: float) -> None:
        """Begins a look when it is time for one and none is under way."""
        with self._lock:
            self._fresh = False
            early = self._asked_at is not None and 0 <= now - self._asked_at < self._every
            if self._busy or self._closed or early:
                return
            self._busy = self._fresh = True
            self._asked_at, self._work = now, (work, now)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"holders-{self.name}", daemon=True)
                self._thread.start()
            self._lock.notify_all()

    def wait(self, until: float) -> None:
        """Waits for the look that this cycle began, until `until` on time.monotonic() at most."""
        with self._lock:
            while self._busy and self._fresh and (left := until - time.monotonic()) > 0:
                self._lock.wait(left)

    def latest(self, now: float) -> tuple[Result | None, float | None, str]:
        """(result, its age in seconds, ""), or (None, None, why there is none). Never older than max_age."""
        with self._lock:
            if self._result is not None:
                result, at = self._result
                age = max(now - at, 0.0)
                if age <= self._max_age:
                    return result, age, ""
                self._result = None  # frees it
            hung = self._busy and self._asked_at is not None and now - self._asked_at > self._max_age
            return None, None, "hung" if hung else self._reason or "too_old"

    def failures(self) -> dict[str, int]:
        """Failed looks, and what looks could not tell, by reason since the start."""
        with self._lock:
            return dict(self._failures)

    def note(self) -> str:
        """What somebody should do so that the source can tell; "" for nothing."""
        return f"holders from {self.name}: {self._note}" if self._note else ""

    def close(self) -> None:
        """Ends the thread; one that hangs in a look is left to the end of the process."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(0.2)

    def _run(self) -> None:
        while True:
            with self._lock:
                while self._work is None and not self._closed:
                    self._lock.wait()
                if self._closed or self._work is None:
                    return
                (work, at), self._work = self._work, None
            result, reason, keep = self._one(work)
            with self._lock:
                self._busy = False
                self._reason = reason
                if result is not None:
                    self._result = (result, at)
                    self._failures.update(result.failures)
                elif not keep:
                    self._result = None
                self._lock.notify_all()
            del work, result

    def _one(self, work: Work) -> tuple[Result | None, str, bool]:
        """(result or None, reason, whether the result before is kept)."""
        try:
            result = self._look(work)
            self._note = ""
            return result, "", True
        except SourceOffError as err:
            if err.told and err.told != self._note:
                log.warning("holders from %s: %s", self.name, err.told)
            self._note = err.told
            return None, err.reason, False
        except LookError as err:
            reason, told = err.reason, str(err)
        except Exception as err:  # a fault of ours must not end the thread: the source would be silent for ever
            reason, told = "error", f"{type(err).__name__}: {err}"
            log.debug("%s", told, exc_info=True)
        with self._lock:
            self._failures[reason] += 1
            first = self._failures[reason] == 1
        log.log(logging.WARNING if first else logging.DEBUG, "holders from %s: %s", self.name, told)
        return None, reason, True
