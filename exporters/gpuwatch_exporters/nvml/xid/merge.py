"""Counts what two witnesses tell of the same events: an event that both tell is one, two events of one witness are two.

Each report is paired with the oldest unpaired report of the other witness that is at most WINDOW_SECONDS away.
"""

from __future__ import annotations

from collections import deque

WINDOW_SECONDS = 2.0
_KEPT = 1024  # unpaired reports of one witness: a storm that only one of them sees must not fill the memory


class Merge:
    """The reports of one kind of event on one device, by two witnesses, each in order of time."""

    __slots__ = ("_unpaired", "count", "last_seconds")

    def __init__(self) -> None:
        self.count = 0
        self.last_seconds = 0.0  # of the latest event
        self._unpaired: dict[str, deque[float]] = {}  # by witness, in order of time

    def report(self, witness: str, seconds: float) -> bool:
        """Files a report; whether it is an event of which the other witness has not told yet."""
        self.last_seconds = max(self.last_seconds, seconds)
        for other, told in self._unpaired.items():
            if other != witness and _take(told, seconds):
                return False
        self.count += 1
        if witness not in self._unpaired:
            self._unpaired[witness] = deque(maxlen=_KEPT)
        self._unpaired[witness].append(seconds)
        return True


def _take(told: deque[float], seconds: float) -> bool:
    """Removes the oldest report that is near enough, and those that are too old for any later one; whether there was
    one."""
    while told and told[0] < seconds - WINDOW_SECONDS:
        told.popleft()
    if told and told[0] <= seconds + WINDOW_SECONDS:
        told.popleft()
        return True
    return False
