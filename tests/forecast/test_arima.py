"""The ARIMA forecaster: statsmodels' own numbers, a sensible order, and a plain end when it goes astray."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpuwatch.forecast.models import arima
from gpuwatch.forecast.models.arima import Arima
from tests.forecast.installed import need_packages
from tests.forecast.test_forecast import daily


@pytest.fixture(autouse=True)
def _installed() -> None:
    need_packages("arima")


def walk(steps: int, seed: int = 2) -> np.ndarray:
    return 100 + np.cumsum(np.random.default_rng(seed).normal(size=steps))


@pytest.mark.parametrize("values", [np.array(daily(336, 4)), walk(336)], ids=["wave", "walk"])
def test_its_recursion_gives_what_statsmodels_forecasts(values):
    order = Arima().fit(values, 24).order
    scaled = (values - values.mean()) / values.std()
    lags = order.lags(24)
    # The order was chosen with more steps held back; here both sides rest on one estimate.
    result = arima._estimate(scaled, 0, 24, order, lags[-1])
    said = result.forecast(24, exog=arima._waves(336, 360, 24, order.waves) if order.waves else None)
    head = 0 if order.differenced else 1
    constant = float(result.params[0]) if head else 0.0
    split = head + len(lags)
    fitted = arima._Fitted(
        order, 24, lags, constant, result.params[head:split], result.params[split:], values.mean(), values.std()
    )
    expected = scaled[-1] + np.cumsum(said) if order.differenced else said
    np.testing.assert_allclose(fitted.predict(values, 24).mean, expected * values.std() + values.mean(), rtol=1e-9)


def test_a_random_walk_is_held_and_a_wave_is_followed():
    assert Arima().fit(walk(336), 24).order.differenced
    wave = np.array(daily(360, 3))
    fitted = Arima().fit(wave[:336], 24)
    assert fitted.order.waves
    assert np.abs(fitted.predict(wave[:336], 24).mean - wave[336:]).mean() < 4


def test_it_predicts_from_a_later_origin_than_it_was_fitted_at():
    wave = np.array(daily(400, 1))
    fitted = Arima().fit(wave[:336], 24)
    assert np.abs(fitted.predict(wave[:376], 24).mean - wave[376:]).mean() < 2


def test_what_does_not_vary_is_held():
    flat = np.full(200, 1e9)
    np.testing.assert_array_equal(Arima().fit(flat, 24).predict(flat, 24).mean, flat[:24])


def test_a_runaway_is_refused():
    wild = arima._Fitted(arima._ORDERS[0], 24, [1], 0.0, np.array([3.0]), np.zeros(0), 0.0, 1.0)
    with pytest.raises(ValueError, match="runs away"):
        wild.predict(np.array([0.0, 1.0, 3.0]), 24)


def test_too_short_is_told():
    with pytest.raises(ValueError, match="few"):
        Arima().fit(np.array([1.0, 2.0, 4.0]), 24)


def test_no_warning_reaches_the_log():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (walk(80), np.array(daily(100)), np.r_[np.zeros(190), 1.0, np.zeros(9)]):
            Arima().fit(values, 24).predict(values, 24)
