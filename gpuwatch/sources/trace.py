"""A public trace as a source: its nodes, filled with its jobs in file order up to a load."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpuwatch.errors import GpuwatchError, SourceError
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth
from gpuwatch.model.units import MILLI
from gpuwatch.sources.restamp import restamp


class TraceSource:
    """The trace in `folder`.

    load_ratio: jobs arrive until they ask for this share of the GPU capacity (0..2); None or 0: an empty cluster.
    live: every read is restamped to its `now`, as a running daemon needs; else the trace's own fixed instant stays.
    """

    def __init__(
        self,
        folder: Path | str,
        workload: str = "default",
        load_ratio: float | None = 0.8,
        policy: str = "best_fit",
        seed: int | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._folder = Path(folder)
        self._workload, self._load_ratio, self._policy, self._seed = workload, load_ratio, policy, seed
        self._live = live
        self._made: ClusterSnapshot | None = None
        self.name = f"trace:{self._folder.name}/{workload}"

    def read(self, now: datetime) -> ClusterSnapshot:
        """The filled cluster, built once. SourceError (bad_answer) when the trace cannot be read."""
        if self._made is None:
            try:
                self._made = self._build()
            except GpuwatchError as err:
                raise SourceError(err.what, tried=err.tried, todo=err.todo, code="bad_answer") from err
        return restamp(self._made, now) if self._live else self._made

    def _build(self) -> ClusterSnapshot:
        from gpuwatch.placement.arrivals import place_stream
        from gpuwatch.traces.trace_format import empty_snapshot, read_trace

        trace = read_trace(self._folder, workload=self._workload)
        snapshot = empty_snapshot(trace)
        if self._load_ratio:
            capacity = MILLI * sum(len(node.gpus) for node in snapshot.nodes)
            until = round(self._load_ratio * capacity)
            snapshot = place_stream(snapshot, trace.jobs, self._policy, until_milligpu=until, seed=self._seed)
        health = SourceHealth(name=self.name, kind="trace", ok=True, observed_at=snapshot.taken_at)
        return replace(snapshot, sources=(health,))
