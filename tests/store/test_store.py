"""The store: hourly means, honest gaps, retention, and a named cause for every fault."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from gpuwatch.errors import SettingsError
from gpuwatch.model.evaluation import Evaluation, Waterfall
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.store import StoreError, StoreGoneError, open_store
from tests.builders import NOW

HOUR = timedelta(hours=1)


def an_evaluation(id_: str = "abc", at: datetime = NOW) -> Evaluation:
    return Evaluation(id=id_, cluster="test", snapshot_taken_at=at, waterfall=Waterfall(installed_milligpu=8000))


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 'deep' / 'er.db'}", cluster="test")
    yield opened
    opened.close()


def test_demand_comes_back_as_hourly_means(store):
    store.record(an_evaluation(), {("a", "all"): 4.0}, NOW)
    store.record(an_evaluation(), {("a", "all"): 8.0}, NOW + timedelta(minutes=30))
    store.record(an_evaluation(), {("a", "all"): 2.0}, NOW + 2 * HOUR)
    (series,) = store.history(NOW + 3 * HOUR).series
    assert (series.pool, series.kind, series.start_at, series.step_seconds) == ("a", "all", NOW, 3600)
    assert series.values == (6.0, None, 2.0)  # the hour in between was not observed: None, never 0


def test_history_ends_before_the_hour_that_is_still_running(store):
    store.record(an_evaluation(), {("a", "all"): 4.0}, NOW)
    assert store.history(NOW + timedelta(minutes=59)) == History()
    assert len(store.history(NOW + HOUR).series) == 1


def test_a_known_key_that_asks_for_nothing_is_a_zero_reading(store):
    store.record(an_evaluation(), {("a", "all"): 4.0, ("a", "batch"): 4.0}, NOW)
    store.record(an_evaluation(), {("a", "all"): 1.0}, NOW + HOUR)
    by_kind = {s.kind: s.values for s in store.history(NOW + 2 * HOUR).series}
    assert by_kind == {"all": (4.0, 1.0), "batch": (4.0, 0.0)}


def test_backfill_adds_only_what_is_not_known(store):
    store.record(an_evaluation(), {("a", "all"): 4.0}, NOW)
    before = DemandSeries(pool="a", kind="all", start_at=NOW - 2 * HOUR, step_seconds=3600, values=(7.0, None, 99.0))
    assert store.backfill(History(series=(before,))) == 1
    assert store.backfill(History(series=(before,))) == 0
    (series,) = store.history(NOW + HOUR).series
    assert series.values == (7.0, None, 4.0)


def test_evaluations_come_back_whole_and_lose_their_document_with_age(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", cluster="test", keep_evaluations=2)
    for n in range(4):
        store.record(an_evaluation(f"id{n}"), {}, NOW + timedelta(minutes=n))
    rows = store.latest(10)
    assert [row.id for row in rows] == ["id3", "id2", "id1", "id0"]
    assert [row.evaluation is not None for row in rows] == [True, True, False, False]
    assert rows[0].evaluation == an_evaluation("id3")
    assert rows[3].installed_milligpu == 8000


def test_what_is_older_than_the_retention_is_forgotten(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", cluster="test", retention_days=1)
    store.record(an_evaluation("old"), {("a", "all"): 1.0}, NOW)
    store.record(an_evaluation("new"), {("a", "all"): 2.0}, NOW + timedelta(days=2))
    assert [row.id for row in store.latest(9)] == ["new"]
    (series,) = store.history(NOW + timedelta(days=3), hours=24 * 10).series
    assert series.start_at == NOW + timedelta(days=2)


def test_advice_keeps_its_first_time_until_it_was_gone_for_a_day(store):
    assert store.seen(["r1"], NOW) == {"r1": NOW}
    assert store.seen(["r1", "r2"], NOW + HOUR) == {"r1": NOW, "r2": NOW + HOUR}
    later = NOW + timedelta(days=3)
    assert store.seen(["r1"], later) == {"r1": later}
    assert store.seen([], later) == {}


def test_clusters_in_one_file_do_not_mix(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    one, two = open_store(url, cluster="one"), open_store(url, cluster="two")
    one.record(an_evaluation("i1"), {("a", "all"): 1.0}, NOW)
    assert two.history(NOW + HOUR) == History()
    assert two.latest() == []


def test_a_reopened_store_remembers(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    first = open_store(url, cluster="test")
    first.record(an_evaluation(), {("a", "all"): 1.0}, NOW)
    first.close()
    assert len(open_store(url, cluster="test").history(NOW + HOUR).series) == 1


def test_a_store_in_memory_is_one_store():
    store = open_store("sqlite://", cluster="test")
    store.record(an_evaluation(), {("a", "all"): 1.0}, NOW)
    assert store.latest()[0].id == "abc"


def test_a_corrupt_file_is_named(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"this is no database at all, not even nearly" * 50)
    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{path}")
    assert caught.value.code == "store_corrupt"
    assert "move the file away" in caught.value.todo


def test_a_locked_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("gpuwatch.store.store._BUSY_SECONDS", 0.05)
    path = tmp_path / "x.db"
    store = open_store(f"sqlite:///{path}", cluster="test")
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError) as caught:
        store.record(an_evaluation(), {}, NOW)
    assert caught.value.code == "store_locked"
    other.rollback()
    store.record(an_evaluation(), {}, NOW)  # and it recovers by itself


def test_a_read_only_file_is_named(tmp_path):
    path = tmp_path / "x.db"
    open_store(f"sqlite:///{path}", cluster="test").close()
    store = open_store(f"sqlite:///file:{path}?mode=ro&uri=true", cluster="test")
    with pytest.raises(StoreError) as caught:
        store.record(an_evaluation(), {}, NOW)
    assert caught.value.code == "store_read_only"


def test_another_layout_is_refused(tmp_path):
    path = tmp_path / "x.db"
    open_store(f"sqlite:///{path}").close()
    other = sqlite3.connect(path)
    other.execute("UPDATE meta SET value = '99'")
    other.commit()
    other.close()
    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{path}")
    assert caught.value.code == "store_version"


@pytest.mark.parametrize("url", ["not a url", "nosuchdb://x/y", ""])
def test_a_url_that_is_none_is_a_setting_fault(url):
    with pytest.raises(SettingsError):
        open_store(url)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{tmp_path / 'file' / 'x.db'}")
    assert caught.value.code == "store_unreachable"


def test_naive_times_never_reach_the_answers(store):
    store.record(an_evaluation(), {("a", "all"): 1.0}, NOW)
    assert store.latest()[0].recorded_at.tzinfo is UTC


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_no_longer_there_is_not_written_to(tmp_path, replaced):
    path = tmp_path / "x.db"
    opened = open_store(f"sqlite:///{path}", cluster="test")
    opened.record(an_evaluation(), {("a", "all"): 4.0}, NOW)
    path.rename(tmp_path / "away.db")
    if replaced:
        open_store(f"sqlite:///{path}", cluster="test").close()
    for use in (
        lambda: opened.record(an_evaluation(), {("a", "all"): 4.0}, NOW),
        lambda: opened.history(NOW + HOUR),
        lambda: opened.backfill(History()),
        lambda: opened.seen(["a"], NOW),
        lambda: opened.latest(),
    ):
        with pytest.raises(StoreGoneError, match="removed or replaced"):
            use()
    opened.close()
    assert path.exists() is replaced


def test_what_the_caller_remembers_of_advice_is_taken_over_once(store):
    before = NOW - HOUR
    assert store.seen(["a", "b"], NOW, known={"a": before}) == {"a": before, "b": NOW}
    assert store.seen(["a"], NOW + HOUR) == {"a": before}
    assert store.seen(["a"], NOW + HOUR, known={"a": NOW}) == {"a": before}  # the store knows better
