"""What a forecaster is: it learns from the fleet, fits a series, predicts from any later origin. One file each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gpuwatch.registry import Registry

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Mean per step, shape (horizon,), NaN where the model has nothing to say; native quantiles by level if it has any.

    Published intervals are conformal and rest on the backtest; native quantiles are for comparison.
    """

    mean: Values
    quantiles: dict[float, Values] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be there before a forecaster is tried.

    seasons: observed seasons before its first forecast. refit_seasons: a fit this old is renewed; 0: at every origin.
    packages: importable modules that a base installation lacks; install: the command that brings them.
    fleet: what `learn` returns depends on the fleet, so it may only be verified on steps later than that fleet.
    """

    seasons: float = 1.0
    refit_seasons: float = 0.0
    packages: tuple[str, ...] = ()
    install: str = ""
    fleet: bool = False


@dataclass(frozen=True, slots=True)
class Fleet:
    """All series on one time grid, oldest first, NaN where nothing was observed; all end at the same moment.

    season: steps a day. phase: steps from the last midnight (UTC unless the history has another zone) to the end.
    """

    series: tuple[Values, ...]
    season: int
    phase: int = 0

    def before(self, steps: int) -> Fleet:
        """What was known `steps` steps before the end."""
        cut = tuple(values[: max(0, values.size - steps)] for values in self.series)
        return Fleet(tuple(values for values in cut if values.size), self.season, (self.phase - steps) % self.season)

    def whole_days(self) -> Fleet:
        """Without the day that is not over, and without the first day when it began late."""
        ended = self.before(self.phase)
        whole = (values[values.size % self.season :] for values in ended.series)
        return Fleet(tuple(values for values in whole if values.size), self.season)


class Fitted(Protocol):
    """A fitted model. It may be asked from later origins than the one that it was fitted at."""

    def predict(self, history: Values, horizon: int) -> Prediction:
        """Forecasts the `horizon` steps after `history` (oldest first, NaN where nothing was observed)."""
        ...


class Learned(Protocol):
    """What a forecaster knows of the fleet, to be fitted to one series."""

    def fit(self, history: Values, season: int) -> Fitted:
        """Learns from `history` (oldest first, NaN where missing) with `season` steps a day. Raises when it cannot."""
        ...


class Forecaster(Protocol):
    """One way to forecast. Stateless: all that it learns is in what `learn` and `fit` return."""

    id: str
    title: str
    needs: Needs

    def learn(self, fleet: Fleet) -> Learned:
        """Learns what the series of `fleet` have in common. Raises when it cannot."""
        ...


class Local:
    """Base of the forecasters that look at one series at a time: the fleet teaches them nothing."""

    def learn(self, fleet: Fleet) -> Self:
        """Itself."""
        return self


FORECASTERS: Registry[Forecaster] = Registry("forecaster", "gpuwatch.forecast.models")


def last_observed(history: Values) -> float:
    """The newest value that was observed; NaN when none was."""
    seen = history[np.isfinite(history)]
    return float(seen[-1]) if seen.size else float("nan")


def repeat(history: Values, period: int, horizon: int) -> Values:
    """The newest observed value at the same place in the period, for each step; NaN where none was ever observed."""
    out = np.full(horizon, np.nan)
    ahead = np.arange(horizon)
    index = history.size + ahead - period * (ahead // period + 1)
    while True:
        todo = np.isnan(out) & (index >= 0)
        if not todo.any():
            return out
        out[todo] = history[index[todo]]
        index = index - period


def filled(history: Values, season: int) -> Values:
    """History without holes: a missing hour takes the value of the day before, else the last or first one observed."""
    out = history.copy()
    seen = np.flatnonzero(np.isfinite(out))
    if seen.size == out.size:
        return out
    for at in np.flatnonzero(~np.isfinite(out)):
        day_before = out[at - season] if at >= season else np.nan
        out[at] = day_before if np.isfinite(day_before) else out[at - 1] if at else out[seen[0]]
    return out
