"""What holds of every forecaster on hard input, opt-in ones included: an answer of the right shape, or a reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.forecast.backtest import checked
from gpuwatch.forecast.forecast import forecast_all
from gpuwatch.forecast.forecaster import FORECASTERS, Fleet
from gpuwatch.forecast.members import NAIVE
from gpuwatch.forecast.models import lstm
from gpuwatch.model.history import History
from tests.builders import NOW
from tests.forecast.installed import need_packages
from tests.forecast.test_forecast import SETTINGS, a_series, check, daily

MODELS = FORECASTERS.ids()
HARD: dict[str, list[float | None]] = {
    "constant": [7.0] * 336,
    "zero": [0.0] * 336,
    "one point": [5.0],
    "one point in a long silence": [None] * 335 + [5.0],
    "all missing": [None] * 336,
    "nothing": [],
    "not a number": [math.nan if h % 7 == 3 else v for h, v in enumerate(daily(336, 3))],
    "a billion": [1e9] * 336,
    "a billion for an hour": [1e9 if h == 200 else v for h, v in enumerate(daily(336, 3))],
    "gaps": [None if h % 10 == 4 or 100 <= h < 150 else v for h, v in enumerate(daily(336, 3))],
    "a step": [3.0] * 200 + [90.0] * 136,
    "flat, then alive": [4.0] * 200 + daily(136, 3),
    "barely enough": daily(96, 3),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    need_packages(request.param)
    if request.param == "lstm":
        monkeypatch.setattr(lstm, "_UPDATES", 60)  # shape and failures do not need a good net
        lstm._train.cache_clear()
    yield str(request.param)
    lstm._train.cache_clear()


@pytest.mark.parametrize("values", HARD.values(), ids=HARD.keys())
def test_hard_series_give_a_forecast_or_a_reason(model, values):
    settings = replace(SETTINGS, forecast_models=(model,))
    (f,) = forecast_all(History(series=(a_series(values),)), NOW, settings)
    check(f)
    if f.status == "ok":
        assert f.model in {*NAIVE, model}


@pytest.mark.parametrize("values", HARD.values(), ids=HARD.keys())
def test_asked_directly_it_answers_in_shape_or_raises_plainly(model, values):
    history = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    before = history.copy()
    try:
        fitted = FORECASTERS.get(model).learn(Fleet((history,), 24)).fit(history, 24)
        mean = checked(fitted.predict(history, 30).mean, history)
    except (ValueError, IndexError):  # the backtest turns these into a reason
        mean = np.zeros(30)
    assert mean.shape == (30,)
    assert not np.isinf(mean).any()
    assert (mean[np.isfinite(mean)] >= 0).all()
    np.testing.assert_array_equal(history, before)


def test_two_runs_are_equal(model):
    history = History(series=tuple(a_series(daily(336, 4, seed), pool=p) for seed, p in enumerate("abc")))
    settings = replace(SETTINGS, forecast_models=(model,))
    first = forecast_all(history, NOW, settings)
    lstm._train.cache_clear()
    assert forecast_all(history, NOW, settings) == first


def test_a_wave_with_noise_is_forecast_within_its_noise(model):
    """No forecaster may be wildly off where any of them should do: mean error under a third of the swing."""
    if model == "last_value":
        pytest.skip("a held value follows no wave")
    fleet = Fleet(tuple(np.array(daily(504, 3, seed)) for seed in range(3)), 24)
    known = fleet.before(24).series[0]
    mean = FORECASTERS.get(model).learn(fleet.before(24)).fit(known, 24).predict(known, 24).mean
    assert np.abs(mean - fleet.series[0][-24:]).mean() < 20 / 3
