"""Forecasts every demand series: checks what is there, backtests, chooses, widens. Never raises on data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np

from gpuwatch.forecast.backtest import checked, run_backtest
from gpuwatch.forecast.forecaster import Fleet, Forecaster, Values
from gpuwatch.forecast.readiness import QUANTITY, Ready, look, unforecast
from gpuwatch.forecast.selection import Lead, bounds_at, choose, score
from gpuwatch.forecast.team import BASELINE, Team, enlist
from gpuwatch.model.evaluation import Forecast, ForecastStep
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import HOUR_SECONDS


def forecast_all(history: History, taken_at: datetime, settings: AnalysisSettings) -> tuple[Forecast, ...]:
    """One Forecast per series, sorted by pool and kind, by the models that `settings` name.

    A kind that a pool never asked for (all observed values 0) is left out; the pool's "all" series is always there.
    SettingsError when a named model does not exist.
    """
    members, absent = enlist(settings.forecast_models)
    wanted = [series for series in history.series if series.kind == "all" or any(series.values)]
    ordered = sorted(wanted, key=lambda series: (series.pool, series.kind))
    return _forecasts(ordered, taken_at, settings, members, absent)


def forecast_series(
    series: DemandSeries, taken_at: datetime, settings: AnalysisSettings, members: Mapping[str, Forecaster]
) -> Forecast:
    """Forecasts one series by `members`, as a fleet of its own.

    The steps end after `taken_at`; the first covers `taken_at` itself. steps[i].at is its start.
    """
    return _forecasts([series], taken_at, settings, members, {})[0]


def _forecasts(
    ordered: list[DemandSeries],
    taken_at: datetime,
    settings: AnalysisSettings,
    members: Mapping[str, Forecaster],
    absent: Mapping[str, str],
) -> tuple[Forecast, ...]:
    looked = [look(series, taken_at, settings) for series in ordered]
    grids: dict[tuple[int, int, datetime], list[Ready]] = defaultdict(list)
    for each in looked:
        if isinstance(each, Ready):
            grids[each.grid].append(each)
    teams = {
        grid: Team(members, Fleet(tuple(each.values for each in found), found[0].season, found[0].phase))
        for grid, found in grids.items()
    }
    return tuple(
        _forecast(each, teams[each.grid], settings, absent) if isinstance(each, Ready) else each for each in looked
    )


def _forecast(ready: Ready, team: Team, settings: AnalysisSettings, absent: Mapping[str, str]) -> Forecast:
    series, values, season = ready.series, ready.values, ready.season
    step = series.step_seconds
    observed = int(np.isfinite(values).sum())
    horizon = max(1, round(settings.forecast_horizon_hours * HOUR_SECONDS / step))
    test = run_backtest(values, season, horizon, team, first=season)
    if BASELINE not in test.predicted:
        why = test.dropped.get(BASELINE, "it is not registered")
        return unforecast(series, f"the daily repeat failed: {why}", observed)
    lead = choose(test, values.size)
    mean, lead = _mean(lead, team, values, season, horizon)
    bounds = bounds_at(test, lead.model, values.size, mean)
    if bounds is None:
        return unforecast(series, "too few past forecasts could be verified for an interval", observed)
    fared = score(test)
    steps = tuple(
        ForecastStep(
            at=ready.ends_at + timedelta(seconds=step * i),
            mean_gpus=float(mean[i]),
            intervals={f"{level:g}": (float(low[i]), float(high[i])) for level, (low, high) in bounds.items()},
        )
        for i in range(horizon)
    )
    told = [lead.reason, *(f"{name} took no part: {why}" for name, why in {**absent, **test.dropped}.items())]
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


def _mean(lead: Lead, team: Team, values: Values, season: int, horizon: int) -> tuple[Values, Lead]:
    """The lead's forecast, its silent steps filled by the baseline; the baseline's when the lead fails now."""

    def now(model: str) -> Values:
        return checked(team.latest(model).fit(values, season).predict(values, horizon).mean, values)

    base = now(BASELINE)
    try:
        mean = now(lead.model)
    except Exception as err:  # a model is a guest, see run_backtest
        return base, Lead(BASELINE, f"{lead.model} led and failed ({err})")
    return np.where(np.isfinite(mean), mean, base), lead
