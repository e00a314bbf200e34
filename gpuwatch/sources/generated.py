"""The generated demo cluster as a source: seeded, moving with time, nothing else installed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpuwatch.model.history import History
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth
from gpuwatch.simulate.cluster import Simulated, advance, simulate


class GeneratedSource:
    """One generated cluster, anchored at the first instant it is asked for and moved on from there.

    seed, scale: see simulate.cluster.simulate. Equal seed, scale and instants give equal snapshots.
    """

    def __init__(self, seed: int = 7, scale: int = 1) -> None:
        self._seed, self._scale = seed, scale
        self._anchor: Simulated | None = None
        self.name = f"generated:{seed}"

    def read(self, now: datetime) -> ClusterSnapshot:
        """The cluster at `now` (aware)."""
        health = SourceHealth(name=self.name, kind="generated", ok=True, observed_at=now)
        return replace(self._at(now).snapshot, sources=(health,))

    def demand_history(self, now: datetime, hours: int) -> History:
        """The generated demand before `now`: two weeks of it, whatever more `hours` asks for."""
        return self._at(now).history

    def _at(self, now: datetime) -> Simulated:
        if self._anchor is None:
            self._anchor = simulate(self._seed, now, self._scale)
        return advance(self._anchor, (now - self._anchor.snapshot.taken_at).total_seconds())
