"""Enough data or a reason, intervals that cover, no glance at the future, no fault on odd input."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.forecast.forecast import forecast_all, forecast_series
from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction
from gpuwatch.forecast.team import BASELINE, enlist
from gpuwatch.model.evaluation import Forecast
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import NOW

SETTINGS = AnalysisSettings()
DEFAULT = enlist(SETTINGS.forecast_models)[0]


def a_series(values, ends=NOW, step=3600, **fields) -> DemandSeries:
    start = ends - timedelta(seconds=step * len(values))
    given_fields = {"pool": "p", "kind": "all", "start_at": start, "step_seconds": step, "values": tuple(values)}
    return DemandSeries(**{**given_fields, **fields})


def daily(hours: int, noise: float = 0.0, seed: int = 1, level: float = 40.0, swing: float = 20.0) -> list[float]:
    rng = random.Random(seed)
    return [level + swing * math.sin(2 * math.pi * h / 24) + rng.gauss(0, noise) for h in range(hours)]


def forecast(values, **fields) -> Forecast:
    return forecast_all(History(series=(a_series(values, **fields),)), NOW, SETTINGS)[0]


def check(f: Forecast) -> None:
    """What holds of every forecast."""
    if f.status != "ok":
        assert f.reason
        assert f.steps == ()
        return
    assert f.model in FORECASTERS.ids()
    assert len(f.steps) == SETTINGS.forecast_horizon_hours
    for step in f.steps:
        (low8, high8), (low95, high95) = step.intervals["0.8"], step.intervals["0.95"]
        assert 0 <= low95 <= low8 <= step.mean_gpus <= high8 <= high95 < math.inf
    assert all(0 <= ratio <= 1 for ratio in f.coverage_ratio.values())


def test_a_pure_daily_wave_is_repeated():
    f = forecast(daily(240))
    check(f)
    assert f.model == BASELINE
    assert [s.mean_gpus for s in f.steps] == pytest.approx(daily(264)[240:], abs=1e-6)


def test_the_first_step_covers_the_snapshot_and_steps_are_hourly():
    f = forecast_series(a_series(daily(240)), NOW + timedelta(minutes=20), SETTINGS, DEFAULT)
    assert [s.at for s in f.steps[:2]] == [NOW, NOW + timedelta(hours=1)]


def test_an_hour_that_is_not_over_is_not_used():
    short = forecast_series(a_series(daily(240)), NOW, SETTINGS, DEFAULT)
    leaky = a_series([*daily(240), 1e6, 1e6], ends=NOW + timedelta(hours=2))
    assert forecast_series(leaky, NOW, SETTINGS, DEFAULT) == short


def test_a_staircase_is_led_by_the_newest_value():
    rng = random.Random(3)
    level, values = 50.0, []
    for _ in range(336):
        level = max(0.0, level + (rng.choice([-8, 8]) if rng.random() < 0.08 else 0))
        values.append(level)
    f = forecast(values)
    check(f)
    assert f.model == "last_value"
    assert f.skill_vs_seasonal_naive > 0
    assert "of the daily repeat's" in f.model_reason


def test_a_week_that_repeats_is_led_by_last_week():
    rng = random.Random(5)
    week = [rng.uniform(0, 100) for _ in range(168)]
    f = forecast(week * 4)
    assert f.model == "weekly_naive"
    assert f.skill_vs_seasonal_naive > 0.3


def test_realized_coverage_is_near_the_nominal_level_and_true_of_the_future():
    hits = total = 0
    shown = []
    for seed in range(12):
        values = daily(336 + 24, noise=5, seed=seed)
        f = forecast(values[:336])
        shown.append(f.coverage_ratio["0.8"])
        for step, actual in zip(f.steps, values[336:], strict=True):
            total += 1
            hits += step.intervals["0.8"][0] <= actual <= step.intervals["0.8"][1]
    assert 0.72 <= hits / total <= 0.9
    assert abs(sum(shown) / len(shown) - hits / total) < 0.08


@pytest.mark.parametrize(("hours", "missing"), [(0, 96), (1, 95), (95, 1)])
def test_too_little_history_says_how_much_is_missing(hours, missing):
    f = forecast([5.0] * hours)
    assert (f.status, f.history_steps) == ("insufficient_data", hours)
    assert f.reason == f"needs {missing} more hours of demand history"


def test_missing_hours_are_not_counted_as_history():
    assert forecast([None, 5.0] * 90).reason == "needs 6 more hours of demand history"


def test_old_history_is_not_extrapolated():
    f = forecast(daily(240), ends=NOW - timedelta(hours=30))
    assert (f.status, f.reason) == ("insufficient_data", "the newest demand is 30 hours old")


def test_a_short_silence_is_bridged():
    f = forecast(daily(240), ends=NOW - timedelta(hours=5))
    check(f)
    assert f.steps[0].at == NOW
    assert f.steps[0].mean_gpus == pytest.approx(daily(246)[245], abs=1e-6)


@pytest.mark.parametrize("value", [0.0, 7.0, 1e9])
def test_constant_series_have_a_unit_of_width(value):
    f = forecast([value] * 200)
    check(f)
    assert f.steps[0].mean_gpus == value
    assert f.steps[0].intervals["0.8"] == (max(0.0, value - 0.5), value + 0.5)
    assert f.skill_vs_seasonal_naive is None


def test_gaps_do_not_pull_the_level_down():
    values = [v if h % 10 else None for h, v in enumerate(daily(336))]
    f = forecast(values)
    check(f)
    assert [s.mean_gpus for s in f.steps] == pytest.approx(daily(360)[336:], abs=1e-6)


def test_kinds_never_asked_for_are_left_out_but_pools_are_not():
    series = [a_series([0.0] * 200, kind=kind) for kind in ("training", "all")]
    assert [f.kind for f in forecast_all(History(series=tuple(series)), NOW, SETTINGS)] == ["all"]


def test_results_are_sorted_and_repeatable():
    history = History(series=tuple(a_series(daily(240, 3), pool=p) for p in "cab"))
    got = forecast_all(history, NOW, SETTINGS)
    assert [f.pool for f in got] == ["a", "b", "c"]
    assert got == forecast_all(history, NOW, SETTINGS)


@pytest.mark.parametrize(
    "fields",
    [
        {"step": 0},
        {"step": -5},
        {"step": 86_400},
        {"start_at": NOW + timedelta(days=1)},
        {"start_at": datetime(2026, 1, 1)},  # noqa: DTZ001
    ],
)
def test_impossible_series_are_named(fields):
    f = forecast(daily(200), **fields)
    assert f.status == "insufficient_data"
    assert f.reason


class _Wild(Local):
    id, title, needs = "wild", "wild", Needs()

    def __init__(self, number: float) -> None:
        self.number = number

    def fit(self, history, season):
        if math.isnan(self.number):
            raise ZeroDivisionError("no")
        return self

    def predict(self, history, horizon):
        return Prediction(history[-horizon:] * 0 + self.number)


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e15])
def test_a_model_that_fails_is_told_and_disturbs_nobody(number):
    models = {**DEFAULT, "wild": _Wild(number)}
    f = forecast_series(a_series(daily(240)), NOW, SETTINGS, models)
    check(f)
    assert "wild took no part" in f.model_reason


@settings(max_examples=120)
@given(
    st.lists(
        st.none() | st.sampled_from([0.0, 1.0, -3.0, 1e9, 1e300, math.nan, math.inf]) | st.floats(0, 500), max_size=220
    ),
    st.integers(-3, 40),
)
def test_any_series_gives_a_forecast_or_a_reason(values, late):
    check(forecast(values, ends=NOW - timedelta(hours=late)))
