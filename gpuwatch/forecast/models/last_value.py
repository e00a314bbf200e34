"""The newest value, held. On staircase-like occupancy nothing beats it for the next few hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction, Values, last_observed


@dataclass(frozen=True, slots=True)
class _Held:
    def predict(self, history: Values, horizon: int) -> Prediction:
        return Prediction(np.full(horizon, last_observed(history)))


class LastValue(Local):
    """The newest observed value for every step."""

    id = "last_value"
    title = "newest value, held"
    needs = Needs(seasons=0)

    def fit(self, history: Values, season: int) -> _Held:
        return _Held()


FORECASTERS.register(LastValue.id)(LastValue())
