"""A regression on recent hours, the same hour of past days, and smooth daily and weekly waves; refitted each time.

Its coefficients hold the level, so they go stale within hours: it is fitted at every origin, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction, Values, filled

_RECENT = (1, 2, 3)
_DAILY_WAVES = 3
_WEEKLY_WAVES = 2
_DAYS = 7
_WINDOW_DAYS = 14  # older hours pull the level towards the past
_RIDGE = 1.0  # in standard deviations; keeps the fit finite when columns repeat each other


@dataclass(frozen=True, slots=True)
class _Regression:
    season: int
    lags: tuple[int, ...]
    weights: Values  # (features,)
    level: float
    spread: float

    def predict(self, history: Values, horizon: int) -> Prediction:
        known = (filled(history, self.season) - self.level) / self.spread
        split = len(self.lags)
        lagged = list(zip(self.lags, self.weights[:split].tolist(), strict=True))
        waves = _waves(history.size, history.size + horizon, self.season) @ self.weights[split:]
        # A deviation beyond anything seen would feed on itself through the recent lags.
        low, high = float(known.min()), float(known.max())
        floor, ceiling = 2 * low - high, 2 * high - low
        path: list[float] = known[-max(self.lags) :].tolist()
        for wave in waves.tolist():
            value = wave + sum(weight * path[-lag] for lag, weight in lagged)
            path.append(min(max(value, floor), ceiling))
        return Prediction(np.array(path[-horizon:]) * self.spread + self.level)


class FourierAr(Local):
    """Ridge regression on lags and waves, closed form."""

    id = "fourier_ar"
    title = "recent hours, yesterday, and daily and weekly waves"
    needs = Needs(seasons=3)

    def fit(self, history: Values, season: int) -> _Regression:
        return _fit(history.tobytes(), season)


@lru_cache(maxsize=128)  # the median asks for the same fits right after, at every origin of a backtest
def _fit(history: bytes, season: int) -> _Regression:
    known = filled(np.frombuffer(history), season)
    lags = tuple(lag for lag in (*_RECENT, season, _DAYS * season) if lag + 2 * season <= known.size)
    start = max(max(lags), known.size - _WINDOW_DAYS * season)
    level, spread = float(known[start:].mean()), float(known[start:].std()) or 1.0
    scaled = (known - level) / spread
    features = np.column_stack([scaled[start - lag : known.size - lag] for lag in lags])
    features = np.hstack([features, _waves(start, known.size, season)])
    gram = features.T @ features + _RIDGE * np.eye(features.shape[1])
    weights: Values = np.linalg.solve(gram, features.T @ scaled[start:]).astype(np.float64)
    return _Regression(season, lags, weights, level, spread)


def _waves(start: int, end: int, season: int) -> Values:
    """(end - start, 2 * waves): sines and cosines of the day and of the week at steps start..end."""
    week = _week_of_waves(season)
    return week[np.arange(start, end) % len(week)]


@lru_cache(maxsize=8)
def _week_of_waves(season: int) -> Values:
    cycles = np.array(
        [k / season for k in range(1, _DAILY_WAVES + 1)] + [k / (_DAYS * season) for k in range(1, _WEEKLY_WAVES + 1)]
    )
    angle = 2 * np.pi * np.arange(_DAYS * season)[:, None] * cycles[None, :]
    return np.hstack([np.sin(angle), np.cos(angle)])


FORECASTERS.register(FourierAr.id)(FourierAr())
