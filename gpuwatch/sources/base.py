"""What every door is: something with a name that gives a whole snapshot, or says why it cannot."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from gpuwatch.model.snapshot import ClusterSnapshot


class Source(Protocol):
    """One way to read a cluster. `name` is what health, metrics and errors call it."""

    name: str

    def read(self, now: datetime) -> ClusterSnapshot:
        """The cluster at `now` (aware UTC). Raises SourceError; never gives a part as if it were the whole."""
        ...
