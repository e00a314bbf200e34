"""The generated demo cluster as a source: seeded, nothing else installed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpuwatch.model.history import History
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth
from gpuwatch.simulate.cluster import simulate
from gpuwatch.sources.restamp import restamp


class GeneratedSource:
    """One generated cluster, restamped to every read's `now` so that it stays fresh while it stands still."""

    def __init__(self, seed: int = 7, scale: int = 1) -> None:
        self._seed, self._scale = seed, scale
        self._made: ClusterSnapshot | None = None
        self.name = f"generated:{seed}"

    def read(self, now: datetime) -> ClusterSnapshot:
        """The cluster at `now`; equal seed, scale and `now` give an equal snapshot."""
        if self._made is None:
            self._made = simulate(self._seed, now, self._scale).snapshot
        snapshot = restamp(self._made, now)
        health = SourceHealth(name=self.name, kind="generated", ok=True, observed_at=now)
        return replace(snapshot, sources=(health, *(s for s in snapshot.sources if s.kind != "generated")))

    def demand_history(self, now: datetime, hours: int) -> History:
        """The generated demand before `now`: two weeks of it, whatever `hours` asks beyond that."""
        return simulate(self._seed, now, self._scale).history
