"""When a call may be made: never closer than the floor, and later and later while it fails."""

from __future__ import annotations

from dataclasses import dataclass

MOST_BACKOFF_SECONDS = 300.0
_FIRST_BACKOFF_SECONDS = 5.0


@dataclass
class Pace:
    """The pace of one call. Times are monotonic seconds. `period_seconds`: how seldom it need be made while its last
    values are at hand; never less than the floor."""

    floor_seconds: float
    period_seconds: float = 0.0
    hurried: bool = False
    failures: int = 0  # in a row
    called_at: float | None = None

    def due(self, now: float) -> bool:
        """Whether the call may be made."""
        return self.called_at is None or now >= self.called_at + self.wait_seconds()

    def wait_seconds(self) -> float:
        """The least time between the last call's begin and the next one's."""
        period = 0.0 if self.hurried or self.failures else self.period_seconds
        return max(self.floor_seconds, period, self.backoff_seconds())

    def backoff_seconds(self) -> float:
        """What failures add: nothing after the first, so that a restart of the controller is over soon; then 5 s,
        10 s, 20 s, and so on up to five minutes."""
        if self.failures < 2:
            return 0.0
        return min(_FIRST_BACKOFF_SECONDS * 2.0 ** min(self.failures - 2, 20), MOST_BACKOFF_SECONDS)

    def hurry(self) -> None:
        """The last values are gone: the floor alone holds for the next call."""
        self.hurried = True

    def called(self, now: float) -> None:
        """A call begins."""
        self.hurried = False
        self.called_at = now

    def ended(self, good: bool) -> None:
        """How it ended."""
        self.failures = 0 if good else self.failures + 1
