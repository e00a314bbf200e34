"""The daily repeat: each hour is forecast as the same hour of the last day that was observed. The baseline of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction, Values, last_observed, repeat


@dataclass(frozen=True, slots=True)
class _Repeat:
    period: int

    def predict(self, history: Values, horizon: int) -> Prediction:
        mean = repeat(history, self.period, horizon)
        mean[np.isnan(mean)] = last_observed(history)
        return Prediction(mean)


class SeasonalNaive(Local):
    """Same hour yesterday; an hour that was never observed takes the newest value."""

    id = "seasonal_naive"
    title = "same hour yesterday"
    needs = Needs(seasons=1)

    def fit(self, history: Values, season: int) -> _Repeat:
        return _Repeat(season)


FORECASTERS.register(SeasonalNaive.id)(SeasonalNaive())
