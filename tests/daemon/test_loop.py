"""The loop: publishes, remembers, and outlives every failure of its sources, its store and its stages."""

from __future__ import annotations

import shutil
import sqlite3
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from gpuwatch.clock import FixedClock
from gpuwatch.daemon import loop
from gpuwatch.daemon.loop import Daemon
from gpuwatch.errors import SourceError
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.store import open_store
from tests.builders import NOW, a_job, a_node, a_snapshot
from tests.evaluations import advice


class FakeSource:
    """Gives a snapshot of its `now`, or raises what it was told to."""

    def __init__(self, name: str = "file:fake") -> None:
        self.name = name
        self.fault: Exception | None = None
        self.snapshot = a_snapshot(a_node(), jobs=[a_job("j1", "n1", [0, 1])])

    def read(self, now) -> ClusterSnapshot:
        if self.fault is not None:
            raise self.fault
        return replace(self.snapshot, taken_at=now)


@pytest.fixture
def clock():
    return FixedClock(NOW)


@pytest.fixture
def source():
    return FakeSource()


def a_daemon(clock, *sources, **fields) -> Daemon:
    return Daemon(sources, AnalysisSettings(), clock=clock, **fields)


def test_a_round_publishes_one_evaluation_of_one_snapshot(clock, source):
    daemon = a_daemon(clock, source)
    assert not daemon.state.readiness().ready
    assert daemon.round()
    view = daemon.state.view
    assert view.evaluation.snapshot_taken_at == view.snapshot.taken_at == NOW
    assert view.evaluation.waterfall.allocated_milligpu == 2000
    assert daemon.state.readiness().ready
    assert {"read", "history", "waterfall", "advice", "record"} <= set(view.stage_seconds)
    assert [(s.name, s.ok) for s in view.sources] == [("file:fake", True)]


def test_a_source_that_fails_leaves_the_last_evaluation_with_a_growing_age(clock, source):
    daemon = a_daemon(clock, source)
    daemon.round()
    before = daemon.state.view.evaluation
    source.fault = SourceError("it is down", code="unreachable")
    clock.advance(60)
    assert not daemon.round()
    view = daemon.state.view
    assert view.evaluation is before
    assert daemon.state.age_seconds(view) == 60.0
    assert (view.sources[0].ok, view.sources[0].cause, view.sources[0].observed_at) == (False, "unreachable", NOW)
    assert view.stage_failures == {"read": 1}
    told = daemon.state.readiness()
    assert not told.ready
    assert "file:fake: unreachable" in told.reasons[0]
    clock.advance(600)
    assert daemon.state.is_stale(daemon.state.view)
    source.fault = None
    assert daemon.round()
    assert daemon.state.readiness().ready


@pytest.mark.parametrize("fault", [ValueError("odd"), RuntimeError(), KeyError("x"), RecursionError("deep")])
def test_nothing_that_a_source_raises_ends_the_loop(clock, source, fault):
    source.fault = fault
    daemon = a_daemon(clock, source)
    assert not daemon.round()
    assert daemon.state.view.sources[0].cause == type(fault).__name__


def test_the_second_source_stands_in_for_the_first(clock, source):
    first = FakeSource("prometheus:a")
    first.fault = SourceError("slow", code="timeout")
    daemon = a_daemon(clock, first, source)
    assert daemon.round()
    assert [(s.name, s.ok) for s in daemon.state.view.sources] == [("prometheus:a", False), ("file:fake", True)]
    assert daemon.state.readiness().ready


def test_a_broken_engine_is_a_finding_not_an_end(clock, source, monkeypatch):
    daemon = a_daemon(clock, source)
    daemon.round()
    before = daemon.state.view.evaluation
    monkeypatch.setattr(loop, "evaluate", lambda *a, **k: 1 / 0)
    assert not daemon.round()
    view = daemon.state.view
    assert view.evaluation is before
    assert (view.findings[0].code, view.stage_failures["round"]) == ("ZeroDivisionError", 1)


def test_an_empty_cluster_and_one_without_devices_are_evaluated(clock, source):
    daemon = a_daemon(clock, source)
    for snapshot in (a_snapshot(), a_snapshot(a_node(gpus=0))):
        source.snapshot = snapshot
        assert daemon.round()
        assert daemon.state.view.evaluation.waterfall.installed_milligpu == 0


def test_the_demand_of_every_round_is_remembered(clock, source, tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    daemon = a_daemon(clock, source, open_store=lambda: open_store(url))
    for _ in range(3):
        daemon.round()
        clock.advance(3600)
    daemon.round()
    history = daemon.state.view.history
    assert daemon.state.view.store_ok is True
    assert {s.kind for s in history.series} >= {"all"}
    series = next(s for s in history.series if s.kind == "all" and s.pool == "default")
    assert series.values == (2.0, 2.0, 2.0)
    daemon.stop()


def test_a_store_that_fails_is_told_and_the_loop_goes_on_without_it(clock, source, tmp_path, monkeypatch):
    monkeypatch.setattr("gpuwatch.store.store._BUSY_SECONDS", 0.05)
    path = tmp_path / "x.db"
    daemon = a_daemon(clock, source, open_store=lambda: open_store(f"sqlite:///{path}"))
    daemon.round()
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    assert daemon.round()
    view = daemon.state.view
    assert (view.store_ok, view.findings[0].code, view.findings[0].subject) == (False, "store_locked", "store")
    assert daemon.state.readiness().ready
    other.rollback()
    other.close()
    daemon.round()
    assert (daemon.state.view.store_ok, daemon.state.view.findings) == (True, ())
    daemon.stop()


def test_a_store_that_cannot_even_be_opened_is_told_and_tried_again(clock, source, tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"no database" * 200)
    daemon = a_daemon(clock, source, open_store=lambda: open_store(f"sqlite:///{path}"))
    assert daemon.round()
    assert daemon.state.view.findings[0].code == "store_corrupt"
    path.unlink()
    assert daemon.round()
    assert daemon.state.view.store_ok is True
    daemon.stop()


def test_a_store_that_is_removed_while_in_use_is_made_anew_from_what_is_remembered(clock, source, tmp_path):
    folder = tmp_path / "state"
    daemon = a_daemon(clock, source, open_store=lambda: open_store(f"sqlite:///{folder / 'x.db'}"))
    for _ in range(3):
        daemon.round()
        clock.advance(3600)
    shutil.rmtree(folder)
    assert daemon.round()
    view = daemon.state.view
    assert (view.store_ok, view.findings[0].code) == (False, "store_gone")
    assert daemon.state.readiness().ready
    assert view.history.series  # forecasts go on with what was read last
    assert daemon.round()
    assert (daemon.state.view.store_ok, daemon.state.view.findings) == (True, ())
    daemon.stop()
    again = open_store(f"sqlite:///{folder / 'x.db'}")
    series = next(s for s in again.history(clock.now()).series if s.kind == "all" and s.pool == "default")
    assert series.values[:2] == (2.0, 2.0)
    again.close()


def test_a_source_that_knows_the_past_fills_the_store_once(clock, source, tmp_path):
    class Historian(FakeSource):
        asked = 0

        def demand_history(self, now, hours):
            self.asked += 1
            start = now - timedelta(hours=3)
            return History(
                series=(DemandSeries(pool="p", kind="all", start_at=start, step_seconds=3600, values=(1.0, None, 3.0)),)
            )

    old = Historian()
    daemon = a_daemon(clock, old, open_store=lambda: open_store(f"sqlite:///{tmp_path / 'x.db'}"))
    daemon.round()
    daemon.round()
    (series,) = [s for s in daemon.state.view.history.series if s.pool == "p"]
    assert series.values == (1.0, None, 3.0)
    assert old.asked == 1
    without = a_daemon(clock, old)
    without.round()
    assert without.state.view.history.series[0].values == (1.0, None, 3.0)
    assert without.state.view.store_ok is None


def test_a_past_that_cannot_be_told_does_not_hold_up_the_present(clock):
    class Forgetful(FakeSource):
        def demand_history(self, now, hours):
            raise SourceError("too old", code="query_error")

    daemon = a_daemon(clock, Forgetful(), open_store=lambda: open_store("sqlite://"))
    assert daemon.round()
    daemon.stop()


@pytest.mark.parametrize("url", [None, "sqlite://"])
def test_advice_keeps_the_time_at_which_it_was_first_given(clock, source, monkeypatch, url):
    real = loop.evaluate

    def evaluate(*args, **fields):
        return replace(real(*args, **fields), recommendations=(advice("r1"),))

    monkeypatch.setattr(loop, "evaluate", evaluate)
    daemon = a_daemon(clock, source, open_store=(lambda: open_store(url)) if url else None)
    for _ in range(3):
        daemon.round()
        assert daemon.state.view.evaluation.recommendations[0].first_seen_at == NOW
        clock.advance(60)
    daemon.stop()


def test_a_demand_that_cannot_be_computed_is_a_gap_not_a_zero(clock, source, monkeypatch, tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    daemon = a_daemon(clock, source, open_store=lambda: open_store(url))
    monkeypatch.setattr(loop, "demand_now", lambda _: 1 / 0)
    assert daemon.round()
    assert daemon.state.view.stage_failures["record"] == 1
    assert open_store(url).history(NOW + timedelta(hours=2)) == History()
    daemon.stop()


def test_the_cluster_is_called_as_configured(clock, source):
    daemon = a_daemon(clock, source, cluster="west")
    daemon.round()
    assert daemon.state.view.evaluation.cluster == "west"


def test_the_thread_starts_at_once_and_stops_when_asked(source):
    daemon = Daemon([source], AnalysisSettings(), interval_seconds=3600)
    daemon.start()
    deadline = time.monotonic() + 20
    while daemon.state.view.evaluation is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert daemon.state.view.evaluations == 1
    before = time.monotonic()
    daemon.stop()
    assert time.monotonic() - before < 3


def test_a_clock_behind_the_source_never_gives_a_negative_age(clock, source):
    daemon = a_daemon(clock, source)
    daemon.round()
    view = daemon.state.view
    ahead = replace(view.snapshot, taken_at=NOW + timedelta(seconds=50))
    daemon.state.publish(snapshot=ahead)
    assert daemon.state.age_seconds(daemon.state.view) == 0.0
