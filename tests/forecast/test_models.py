"""Each forecaster on inputs whose answer is plain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuwatch.forecast.backtest import run_backtest
from gpuwatch.forecast.forecaster import FORECASTERS, Fleet, repeat
from gpuwatch.forecast.intervals import around, buckets, offsets
from gpuwatch.forecast.members import known_models
from gpuwatch.forecast.team import Team
from tests.forecast.installed import need_packages

NAN = float("nan")


def predict(model: str, history: list[float], horizon: int, season: int = 4) -> list[float]:
    values = np.array(history)
    learned = FORECASTERS.get(model).learn(Fleet((values,), season))
    return list(learned.fit(values, season).predict(values, horizon).mean)


def team(model: str, values: np.ndarray) -> Team:
    return Team({model: FORECASTERS.get(model)}, Fleet((values,), 24))


def test_daily_repeat_goes_past_one_season():
    assert predict("seasonal_naive", [9, 9, 9, 9, 1, 2, 3, 4], 6) == [1, 2, 3, 4, 1, 2]


def test_daily_repeat_steps_back_over_gaps_then_takes_the_newest():
    assert predict("seasonal_naive", [5, NAN, 7, 8, NAN, NAN, 3, 4], 4) == [5, 4, 3, 4]


def test_last_value_skips_gaps():
    assert predict("last_value", [1, 2, NAN], 3) == [2, 2, 2]


def test_weekly_repeat_is_silent_on_what_it_never_saw():
    history = [float(i) for i in range(28)]
    history[0] = NAN
    got = predict("weekly_naive", history, 3)
    assert np.isnan(got[0])
    assert got[1:] == [1, 2]


def test_repeat_of_nothing_is_nothing():
    assert np.isnan(repeat(np.array([]), 4, 3)).all()


@pytest.mark.parametrize("model", FORECASTERS.ids())
def test_no_model_reads_past_its_origin(model):
    need_packages(model)
    rng = np.random.default_rng(1)
    values = rng.uniform(0, 50, 300)
    changed = values.copy()
    changed[260:] = 10 * values[260:]
    cut, other = (run_backtest(each, 24, 24, team(model, each), 24) for each in (values, changed))
    assert not cut.dropped, cut.dropped
    early = cut.origins <= 260
    assert np.isfinite(cut.predicted[model][early]).any()
    np.testing.assert_array_equal(cut.predicted[model][early], other.predicted[model][early])


def test_verified_means_over_by_then():
    values = np.arange(60.0)
    test = run_backtest(values, 24, 3, team("last_value", values), 24)
    known = int(test.origins[2]) + 1
    assert test.verified(known)[2].tolist() == [True, False, False]
    assert not test.verified(known)[3:].any()


def test_buckets_follow_their_ends():
    assert buckets(25).tolist() == [0, 1, 1, *[2] * 3, *[3] * 6, *[4] * 12, 5]


def test_offsets_are_order_statistics():
    errors = np.arange(1.0, 20.0)[:, None]  # 19 errors: tail of 0.8 is the 2nd from each end
    low, high = offsets(errors, 1)[0.8]
    assert (low[0], high[0]) == (2.0, 18.0)
    low, high = offsets(errors, 1)[0.95]
    assert (low[0], high[0]) == (1.0, 19.0)


def test_too_few_errors_give_no_interval():
    assert offsets(np.array([[1.0], [2.0]]), 1) is None


def test_bounds_are_nested_and_not_negative_even_when_errors_lean_one_way():
    mean = np.array([1.0])
    offset = {0.8: (np.array([3.0]), np.array([4.0])), 0.95: (np.array([-9.0]), np.array([2.0]))}
    got = around(mean, offset)
    assert (got[0.8][0][0], got[0.8][1][0]) == (0.5, 5.0)
    assert (got[0.95][0][0], got[0.95][1][0]) == (0.0, 5.0)


@pytest.mark.parametrize("model", FORECASTERS.ids())
def test_every_forecaster_has_its_page(model):
    assert model in known_models()
    page = Path(__file__).parents[2] / "docs" / "forecasters" / f"{model}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {model}\n")
