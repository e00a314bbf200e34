"""What an answer holds that is not known here: counted by kind, told once, never a reason to stop."""

from __future__ import annotations

import logging
from collections import Counter

log = logging.getLogger(__name__)
KINDS = ("node_state", "job_state", "gres", "tres", "task_list", "node_list", "row")
_MOST_TOLD = 100


class Unknown:
    """Counts per kind since `begin`, and logs each text the first time it is met."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._told: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Counts from 0 again: the counts are those of one answer."""
        self.counts = Counter(dict.fromkeys(KINDS, 0))

    def add(self, kind: str, met: object) -> None:
        """`met` was not understood."""
        self.counts[kind] += 1
        key = kind, str(met)[:80]
        if key not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(key)
            log.warning("not understood and left out, %s: %s", kind.replace("_", " "), key[1])
