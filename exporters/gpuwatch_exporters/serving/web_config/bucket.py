"""A limit of requests that allows bursts."""

from __future__ import annotations

import threading
import time


class Bucket:
    """Holds up to `burst` requests and gets one more each `interval_seconds`."""

    def __init__(self, interval_seconds: float, burst: int) -> None:
        self._interval = interval_seconds
        self._burst = burst
        self._held = float(burst)
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Takes one out; False when there is none."""
        with self._lock:
            now = time.monotonic()
            self._held = min(float(self._burst), self._held + (now - self._at) / self._interval)
            self._at = now
            if self._held < 1:
                return False
            self._held -= 1
            return True
