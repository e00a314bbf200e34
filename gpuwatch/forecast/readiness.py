"""Whether a demand series can be forecast: its clock, its length, its freshness; and its values as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from gpuwatch.forecast.forecaster import Values
from gpuwatch.model.evaluation import Forecast
from gpuwatch.model.history import DemandSeries
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import HOUR_SECONDS

QUANTITY = "demand_gpus"
MAX_HISTORY_SEASONS = 28  # older demand says little, and costs time
MAX_GPUS = 1e12  # beyond this a number is a unit mix-up, and squares of it lose precision


@dataclass(frozen=True, slots=True)
class Ready:
    """A series that can be forecast.

    values: oldest first, NaN where nothing usable was observed, the last one is of the step that ends at `ends_at`.
    """

    series: DemandSeries
    values: Values
    season: int
    ends_at: datetime

    @property
    def grid(self) -> tuple[int, int, datetime]:
        """Equal for series whose steps fall together and whose last steps are the same."""
        return self.season, self.series.step_seconds, self.ends_at

    @property
    def phase(self) -> int:
        """Whole steps from the last start of a season to the end; seasons are counted from year 1."""
        clock = self.ends_at.hour * HOUR_SECONDS + self.ends_at.minute * 60 + self.ends_at.second
        return (self.ends_at.toordinal() * 24 * HOUR_SECONDS + clock) // self.series.step_seconds % self.season


def look(series: DemandSeries, taken_at: datetime, settings: AnalysisSettings) -> Ready | Forecast:
    """The series made ready, or the forecast that says why there is none."""
    fault = _fault(series, taken_at, settings)
    if fault:
        return unforecast(series, fault, 0)
    step = series.step_seconds
    season = round(settings.forecast_season_hours * HOUR_SECONDS / step)
    ended = math.floor((taken_at - series.start_at).total_seconds() / step)  # steps that are over by now
    values = _known(series, ended)
    seen = np.flatnonzero(np.isfinite(values))
    needed = settings.forecast_min_seasons * season
    if seen.size < needed:
        missing = math.ceil((needed - seen.size) * step / HOUR_SECONDS)
        return unforecast(series, f"needs {missing} more hours of demand history", seen.size)
    silent = ended - 1 - int(seen[-1])
    if silent > season:
        return unforecast(series, f"the newest demand is {round(silent * step / HOUR_SECONDS)} hours old", seen.size)
    gap = np.full(ended - values.size, np.nan)
    values = np.concatenate([values, gap])[-MAX_HISTORY_SEASONS * season :]
    return Ready(series, values, season, series.start_at + timedelta(seconds=step * ended))


def unforecast(series: DemandSeries, reason: str, observed: int) -> Forecast:
    """A forecast that only says why there is none."""
    return Forecast(
        pool=series.pool,
        kind=series.kind,
        quantity=QUANTITY,
        status="insufficient_data",
        reason=reason,
        history_steps=observed,
    )


def _fault(series: DemandSeries, taken_at: datetime, settings: AnalysisSettings) -> str | None:
    if series.step_seconds <= 0 or series.step_seconds * 2 > settings.forecast_season_hours * HOUR_SECONDS:
        return f"a step of {series.step_seconds} s cannot show a season of {settings.forecast_season_hours} h"
    if (series.start_at.tzinfo is None) != (taken_at.tzinfo is None):
        return "its times have no time zone"
    if series.start_at > taken_at:
        return "its history starts after the snapshot"
    return None


def _known(series: DemandSeries, ended: int) -> Values:
    """The values of the first `ended` steps, NaN where nothing usable was observed."""
    usable = (
        amount if amount is not None and math.isfinite(amount) and 0 <= amount <= MAX_GPUS else math.nan
        for amount in series.values[:ended]
    )
    return np.fromiter(usable, dtype=np.float64)
