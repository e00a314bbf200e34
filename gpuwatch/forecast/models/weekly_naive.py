"""The weekly repeat: each hour is forecast as the same hour of the same weekday that was last observed."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.forecast.forecaster import FORECASTERS, Local, Needs, Prediction, Values, repeat

_DAYS = 7


@dataclass(frozen=True, slots=True)
class _WeeklyRepeat:
    period: int

    def predict(self, history: Values, horizon: int) -> Prediction:
        return Prediction(repeat(history, self.period, horizon))


class WeeklyNaive(Local):
    """Same hour last week; says nothing about an hour of the week that it never saw."""

    id = "weekly_naive"
    title = "same hour last week"
    needs = Needs(seasons=_DAYS)

    def fit(self, history: Values, season: int) -> _WeeklyRepeat:
        return _WeeklyRepeat(_DAYS * season)


FORECASTERS.register(WeeklyNaive.id)(WeeklyNaive())
