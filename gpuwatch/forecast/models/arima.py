"""ARIMA(p,d,0) with lags and waves of the day, its order chosen by BIC; estimated by statsmodels, imported late.

Moving-average terms are left out on purpose: without them the fit is a regression that takes a millisecond and always
ends; with them it takes seconds, megabytes, and sometimes does not converge.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction, Values, filled

_WINDOW_SEASONS = 14  # older steps pull the coefficients towards the past
_STEPS_PER_LAG = 4  # an order that reaches further back than this share of the data is not tried
_RUNAWAY = 10.0  # ranges beyond anything seen: the recursion feeds on itself


@dataclass(frozen=True, slots=True)
class _Order:
    """Candidate: recent lags, lags around whole days as (days, offset), first differences or levels, daily waves."""

    recent: tuple[int, ...]
    daily: tuple[tuple[int, int], ...]
    differenced: bool
    waves: int

    def lags(self, season: int) -> list[int]:
        return sorted({*self.recent, *(days * season + offset for days, offset in self.daily)})


_ORDERS = (
    _Order((1,), (), True, 0),  # nearly a random walk: most training pools
    _Order((1, 2, 3), ((1, 0),), True, 0),
    _Order((1, 2, 3), ((1, -1), (1, 0), (1, 1), (2, 0)), True, 0),
    _Order((1, 2, 3, 4, 5, 6), ((1, 0),), True, 3),
    _Order((1, 2), (), False, 3),  # a level to come back to: most inference pools
)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The chosen order in units of `spread` around `center`. parts: constant, one per lag, one per wave column."""

    order: _Order
    season: int
    lags: list[int]
    constant: float
    lag_weights: Values
    wave_weights: Values
    center: float
    spread: float

    def predict(self, history: Values, horizon: int) -> Prediction:
        known = (filled(history, self.season) - self.center) / self.spread
        path: list[float] = (np.diff(known) if self.order.differenced else known).tolist()
        start = len(path)
        if start < self.lags[-1]:
            raise ValueError(f"it looks back {self.lags[-1]} steps and there are {start}")
        waves = _waves(history.size, history.size + horizon, self.season, self.order.waves) @ self.wave_weights
        lagged = list(zip(self.lags, self.lag_weights.tolist(), strict=True))
        for wave in waves.tolist():
            path.append(self.constant + wave + sum(weight * path[-lag] for lag, weight in lagged))
        ahead = np.array(path[start:])
        mean = known[-1] + np.cumsum(ahead) if self.order.differenced else ahead
        span = max(1.0, float(np.ptp(known)))
        if not (np.abs(mean - known[-1]) < _RUNAWAY * span).all():  # also when one is not a number
            raise ValueError("its forecast runs away from everything seen")
        return Prediction(mean * self.spread + self.center)


class Arima(Local):
    """Autoregressive orders with and without differences and daily waves; the Bayesian criterion chooses."""

    id = "arima"
    title = "ARIMA on recent hours and days, order by BIC"
    # A daily refit keeps the coefficients fresh enough at a fifth of the cost.
    needs = Needs(
        seasons=3, refit_seasons=1, packages=("statsmodels",), install="pip install 'gpuwatch-stack[analytics]'"
    )

    def fit(self, history: Values, season: int) -> _Fitted:
        known = filled(history, season)
        if not np.isfinite(known).any():
            raise ValueError("no demand was observed")
        start = max(0, known.size - _WINDOW_SEASONS * season)
        recent = known[start:]
        center, spread = float(recent.mean()), float(recent.std())
        if not spread > 1e-9 * max(1.0, abs(center)):
            return _held(season)
        return _best((recent - center) / spread, start, season, center, spread)


def _held(season: int) -> _Fitted:
    """A random walk without memory: what is left when nothing varied."""
    return _Fitted(_ORDERS[0], season, [1], 0.0, np.zeros(1), np.zeros(0), 0.0, 1.0)


def _best(values: Values, start: int, season: int, center: float, spread: float) -> _Fitted:
    """The order with the lowest BIC, all fitted to the same steps. `values` begin at step `start` of the history."""
    orders = [order for order in _ORDERS if order.lags(season)[-1] * _STEPS_PER_LAG <= values.size]
    if not orders:
        raise ValueError(f"{values.size} steps are too few")
    held_back = max(order.lags(season)[-1] for order in orders)
    found: list[tuple[float, _Fitted]] = []
    for order in orders:
        # The first difference is one step shorter, so one step less is held back.
        estimate = _estimate(values, start, season, order, held_back + (not order.differenced))
        bic, weights = float(estimate.bic), np.asarray(estimate.params, dtype=np.float64)
        if not (np.isfinite(weights).all() and bic == bic):
            continue
        lags = order.lags(season)
        head = 0 if order.differenced else 1
        split = head + len(lags)
        constant = float(weights[0]) if head else 0.0
        fitted = _Fitted(order, season, lags, constant, weights[head:split], weights[split:], center, spread)
        found.append((bic, fitted))
    if not found:
        raise ValueError("no order could be estimated")
    return min(found, key=lambda each: each[0])[1]


def _estimate(values: Values, start: int, season: int, order: _Order, hold_back: int) -> Any:
    """statsmodels' AutoReg result; its warnings concern no reader of a forecast."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statsmodels.tsa.ar_model import AutoReg

        warnings.simplefilter("ignore")  # importing it puts its own filters in front
        series = np.diff(values) if order.differenced else values
        first = start + order.differenced
        waves = _waves(first, first + series.size, season, order.waves) if order.waves else None
        trend = "n" if order.differenced else "c"
        return AutoReg(series, order.lags(season), trend=trend, exog=waves, hold_back=hold_back).fit()


def _waves(start: int, end: int, season: int, count: int) -> Values:
    """(end - start, 2 * count): sines and cosines of the day at steps start..end."""
    angle = 2 * np.pi * np.arange(start, end)[:, None] * np.arange(1, count + 1)[None, :] / season
    return np.hstack([np.sin(angle), np.cos(angle)])


FORECASTERS.register(Arima.id)(Arima())
