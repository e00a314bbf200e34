"""Moves a recorded cluster to another instant, so that a replay in a running daemon is as old as it looks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpuwatch.model.snapshot import ClusterSnapshot


def restamp(snapshot: ClusterSnapshot, taken_at: datetime) -> ClusterSnapshot:
    """The same cluster at `taken_at` (aware UTC): every job and source time moves by the same distance."""
    distance = taken_at - snapshot.taken_at

    def moved(at: datetime | None) -> datetime | None:
        return None if at is None else at + distance

    jobs = tuple(
        replace(
            job,
            submitted_at=moved(job.submitted_at),
            started_at=moved(job.started_at),
            last_checkpoint_at=moved(job.last_checkpoint_at),
        )
        for job in snapshot.jobs
    )
    sources = tuple(replace(source, observed_at=moved(source.observed_at)) for source in snapshot.sources)
    return replace(snapshot, taken_at=taken_at, jobs=jobs, sources=sources)
