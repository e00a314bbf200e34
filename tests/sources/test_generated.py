"""The generated cluster as a source, and snapshots moved in time."""

from __future__ import annotations

from datetime import timedelta

from gpuwatch.sources.generated import GeneratedSource
from gpuwatch.sources.restamp import restamp
from tests.builders import NOW, a_job, a_snapshot


def test_it_repeats_and_follows_the_clock():
    one, two = GeneratedSource(seed=3), GeneratedSource(seed=3)
    assert one.read(NOW) == two.read(NOW)
    later = NOW + timedelta(hours=1)
    assert one.read(later).taken_at == later
    assert one.read(later) == two.read(later)
    assert one.read(NOW).sources[0].ok


def test_its_past_ends_where_its_present_begins():
    history = GeneratedSource(seed=3).demand_history(NOW, 24)
    assert history.series
    for series in history.series:
        assert series.start_at + timedelta(seconds=series.step_seconds) * len(series.values) <= NOW


def test_restamping_moves_every_time_by_the_same_distance():
    job = a_job("j", "n", submitted_at=NOW - timedelta(hours=2), started_at=NOW - timedelta(hours=1))
    moved = restamp(a_snapshot(jobs=[job]), NOW + timedelta(days=3))
    assert moved.taken_at == NOW + timedelta(days=3)
    assert moved.taken_at - moved.jobs[0].started_at == timedelta(hours=1)
    assert moved.jobs[0].last_checkpoint_at is None
    assert restamp(moved, NOW).jobs == (job,)
