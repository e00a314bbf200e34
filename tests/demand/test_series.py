"""Even hours from uneven points; missing stays missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.demand.series import MAX_STEPS, demand_now, regrid
from gpuwatch.errors import InputError
from gpuwatch.model.snapshot import SourceHealth
from tests.builders import NOW, a_job, a_node, a_shape, a_snapshot


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def grid(points, **fields):
    return regrid(points, pool="p", kind="all", **fields)


def test_means_per_hour_and_missing_hours():
    series = grid([(at(0.1), 4), (at(0.9), 6), (at(2.5), 1)])
    assert (series.start_at, series.values) == (NOW, (5.0, None, 1.0))


def test_zero_is_a_reading():
    assert grid([(at(0), 0), (at(1), 0.0)]).values == (0.0, 0.0)


def test_unusable_points_are_dropped():
    bad = [(at(0), float("nan")), (at(1), float("inf")), (at(2), -1), (at(3), None)]
    assert grid(bad) is None
    assert grid([*bad, (at(4), 2)]).values == (2.0,)


def test_bounds_widen_and_cut():
    series = grid([(at(0), 1), (at(5), 9)], start_at=at(-1), end_at=at(2))
    assert series.values == (None, 1.0, None)


def test_zones_are_folded_to_utc():
    local = at(0).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert grid([(local, 1)]).start_at == NOW


def test_a_time_without_zone_is_refused():
    with pytest.raises(InputError, match="no time zone"):
        grid([(datetime(2026, 1, 1), 1)])  # noqa: DTZ001


def test_a_step_must_be_positive():
    with pytest.raises(InputError, match="positive step"):
        grid([(NOW, 1)], step_seconds=0)


def test_one_point_in_a_wrong_year_does_not_explode():
    series = grid([(datetime(1971, 1, 1, tzinfo=UTC), 1), (NOW, 2)])
    assert len(series.values) == MAX_STEPS
    assert series.values[-1] == 2


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e9)), min_size=1))
def test_every_mean_lies_between_its_points(points):
    series = grid([(NOW + timedelta(seconds=s), v) for s, v in points])
    for i, value in enumerate(series.values):
        low = series.start_at + timedelta(hours=i)
        inside = [v for s, v in points if low <= NOW + timedelta(seconds=s) < low + timedelta(hours=1)]
        assert (value is None) == (not inside)
        if inside:
            assert min(inside) * 0.999999 <= value <= max(inside) * 1.000001


def test_now_counts_pools_without_demand_as_zero():
    got = demand_now(a_snapshot(a_node(pool="idle"), a_node("n2", pool="cpu", gpus=0)))
    assert {pool for pool, _ in got} == {"idle"}
    assert got["idle", "all"] == 0.0


def test_now_says_nothing_when_a_source_failed_and_no_job_is_known():
    down = SourceHealth(name="prom", kind="prometheus", ok=False, cause="timeout")
    assert demand_now(a_snapshot(a_node(), sources=(down,))) == {}
    assert demand_now(a_snapshot(a_node(), jobs=[a_job("j", "n1", [0])], sources=(down,)))["default", "all"] == 1.0


def test_gated_members_are_no_demand():
    assert demand_now(a_snapshot(a_node(), jobs=[a_job("g", phase="gated")]))["default", "all"] == 0.0


@pytest.mark.parametrize(("profile", "milligpu"), [("1g.10gb", 143), ("7g.80gb", 1000), ("odd", 0)])
def test_mig_members_count_compute_sevenths(profile, milligpu):
    assert a_shape(mig_profile=profile).demanded_milligpu == milligpu
