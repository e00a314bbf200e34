"""Time as a dependency: stages get "now" from the snapshot, shells get it from a Clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a shell may ask of time."""

    def now(self) -> datetime:
        """The present, as an aware UTC datetime."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean something."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class FixedClock:
    """A clock that stands still until it is told to move (replays and tests)."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("FixedClock needs an aware datetime")
        self._at = at
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._at

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Moves both clocks forward by `seconds` (>= 0)."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._at += timedelta(seconds=seconds)
        self._monotonic += seconds
