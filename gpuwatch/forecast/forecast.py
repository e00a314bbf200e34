"""Forecasts every demand series: checks what is there, backtests, chooses, widens. Never raises on data."""

from __future__ import annotations

import importlib.util
import math
from datetime import datetime, timedelta

import numpy as np

from gpuwatch.forecast.backtest import BASELINE, checked, run_backtest
from gpuwatch.forecast.forecaster import FORECASTERS, Forecaster, Values
from gpuwatch.forecast.selection import Lead, bounds_at, choose, score
from gpuwatch.model.evaluation import Forecast, ForecastStep
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import HOUR_SECONDS

QUANTITY = "demand_gpus"
MAX_HISTORY_SEASONS = 28  # older demand says little, and costs time
MAX_GPUS = 1e12  # beyond this a number is a unit mix-up, and squares of it lose precision


def forecast_all(history: History, taken_at: datetime, settings: AnalysisSettings) -> tuple[Forecast, ...]:
    """One Forecast per series, sorted by pool and kind.

    A kind that a pool never asked for (all observed values 0) is left out; the pool's "all" series is always there.
    """
    models, absent = _models()
    ordered = sorted(history.series, key=lambda series: (series.pool, series.kind))
    return tuple(
        forecast_series(series, taken_at, settings, models, absent)
        for series in ordered
        if series.kind == "all" or any(series.values)
    )


def forecast_series(
    series: DemandSeries,
    taken_at: datetime,
    settings: AnalysisSettings,
    models: dict[str, Forecaster],
    absent: dict[str, str] | None = None,
) -> Forecast:
    """Forecasts the steps that end after `taken_at`; the first covers `taken_at` itself. steps[i].at is its start."""
    fault = _fault(series, taken_at, settings)
    if fault:
        return _none(series, fault, 0)
    step = series.step_seconds
    season = round(settings.forecast_season_hours * HOUR_SECONDS / step)
    ended = math.floor((taken_at - series.start_at).total_seconds() / step)  # steps that are over by now
    values = _known(series, ended)
    seen = np.flatnonzero(np.isfinite(values))
    needed = settings.forecast_min_seasons * season
    if seen.size < needed:
        missing = math.ceil((needed - seen.size) * step / HOUR_SECONDS)
        return _none(series, f"needs {missing} more hours of demand history", seen.size)
    silent = ended - 1 - int(seen[-1])
    if silent > season:
        return _none(series, f"the newest demand is {round(silent * step / HOUR_SECONDS)} hours old", seen.size)
    gap = np.full(ended - values.size, np.nan)
    values = np.concatenate([values, gap])[-MAX_HISTORY_SEASONS * season :]
    observed = int(np.isfinite(values).sum())
    horizon = max(1, round(settings.forecast_horizon_hours * HOUR_SECONDS / step))
    test = run_backtest(values, season, horizon, models, first=season)
    if BASELINE not in test.predicted:
        return _none(series, f"the daily repeat failed: {test.dropped.get(BASELINE, 'it is not registered')}", observed)
    lead = choose(test, values.size)
    mean, lead = _mean(lead, models, values, season, horizon)
    bounds = bounds_at(test, lead.model, values.size, mean)
    if bounds is None:
        return _none(series, "too few past forecasts could be verified for an interval", observed)
    fared = score(test)
    first_at = series.start_at + timedelta(seconds=step * ended)
    steps = tuple(
        ForecastStep(
            at=first_at + timedelta(seconds=step * i),
            mean_gpus=float(mean[i]),
            intervals={f"{level:g}": (float(low[i]), float(high[i])) for level, (low, high) in bounds.items()},
        )
        for i in range(horizon)
    )
    told = [lead.reason, *(f"{name} took no part: {why}" for name, why in {**(absent or {}), **test.dropped}.items())]
    return Forecast(
        pool=series.pool,
        kind=series.kind,
        quantity=QUANTITY,
        status="ok",
        model=lead.model,
        model_reason="; ".join(told),
        skill_vs_seasonal_naive=fared.skill,
        coverage_ratio={f"{level:g}": ratio for level, ratio in fared.coverage.items()},
        history_steps=observed,
        steps=steps,
    )


def _models() -> tuple[dict[str, Forecaster], dict[str, str]]:
    """Forecasters whose packages are installed, and the others with the reason."""
    ready: dict[str, Forecaster] = {}
    absent: dict[str, str] = {}
    for name, model in FORECASTERS.items():
        lacking = [package for package in model.needs.packages if importlib.util.find_spec(package) is None]
        if lacking:
            absent[name] = f"{', '.join(lacking)} is not installed"
        else:
            ready[name] = model
    return ready, absent


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


def _mean(lead: Lead, models: dict[str, Forecaster], values: Values, season: int, horizon: int) -> tuple[Values, Lead]:
    """The lead's forecast, its silent steps filled by the baseline; the baseline's when the lead fails now."""
    base = checked(models[BASELINE].fit(values, season).predict(values, horizon).mean, values)
    try:
        mean = checked(models[lead.model].fit(values, season).predict(values, horizon).mean, values)
    except Exception as err:  # a model is a guest, see run_backtest
        return base, Lead(BASELINE, f"{lead.model} led and failed ({err})")
    return np.where(np.isfinite(mean), mean, base), lead


def _none(series: DemandSeries, reason: str, observed: int) -> Forecast:
    return Forecast(
        pool=series.pool,
        kind=series.kind,
        quantity=QUANTITY,
        status="insufficient_data",
        reason=reason,
        history_steps=observed,
    )
