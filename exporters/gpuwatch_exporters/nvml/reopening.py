"""When to open the library anew because it lacks a device that the kernel lists: soon, then ever more seldom."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)
FIRST_SECONDS, MOST_SECONDS = 60.0, 3600.0


class Reopening:
    """Asked in each cycle; a library that knows every device starts the waits anew."""

    def __init__(self) -> None:
        self._wait = FIRST_SECONDS
        self._at: float | None = None

    def due(self, unknown: bool) -> bool:
        """Whether the library is to be opened anew; unknown: in this cycle it lacks a device."""
        now = time.monotonic()
        if not unknown:
            self._wait, self._at = FIRST_SECONDS, None
            return False
        if self._at is None:
            self._at = now + self._wait
        if now < self._at:
            return False
        log.info("the kernel lists a device that NVML does not know: it is opened anew with the next cycle")
        self._wait = min(2 * self._wait, MOST_SECONDS)
        self._at = now + self._wait
        return True
