"""The median of the newest value, the same hour yesterday and the regression: rarely the best, almost never the worst.

For the first steps of a series without a daily wave it is the newest value alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Fitted, Local, Needs, Prediction, Values
from gpuwatch.forecast.models.fourier_ar import FourierAr
from gpuwatch.forecast.models.last_value import LastValue
from gpuwatch.forecast.models.seasonal_naive import SeasonalNaive

_NEAR_STEPS = 3
_WAVE_STRENGTH = 0.25  # share of the variance that the hour of the day explains
_MEMBERS = (LastValue(), SeasonalNaive(), FourierAr())


@dataclass(frozen=True, slots=True)
class _Median:
    members: tuple[Fitted, ...]
    near: Fitted | None

    def predict(self, history: Values, horizon: int) -> Prediction:
        one, two, three = (member.predict(history, horizon).mean for member in self.members)
        mean = np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))
        if self.near is not None:
            steps = min(_NEAR_STEPS, horizon)
            mean[:steps] = self.near.predict(history, steps).mean
        return Prediction(mean)


class Median(Local):
    """One member that goes wrong is outvoted by the two others."""

    id = "median"
    title = "median of newest value, yesterday and regression"
    needs = Needs(seasons=3)

    def fit(self, history: Values, season: int) -> _Median:
        members = tuple(member.fit(history, season) for member in _MEMBERS)
        return _Median(members, None if daily_strength(history, season) >= _WAVE_STRENGTH else members[0])


def daily_strength(history: Values, season: int) -> float:
    """Share of the variance that the mean daily shape explains, 0..1; 0 for a series that does not vary."""
    days = history[history.size % season :].reshape(-1, season)
    seen = np.isfinite(days)
    total = float(np.var(days[seen])) if seen.any() else 0.0
    if total == 0:
        return 0.0
    count = seen.sum(axis=0)
    shape = np.where(count > 0, np.where(seen, days, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
    rest = (days - shape[None, :])[seen]
    return max(0.0, 1 - float(np.var(rest)) / total)


FORECASTERS.register(Median.id)(Median())
