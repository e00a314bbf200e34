"""What a forecaster is: declared needs, fit on the past, predict from any later origin. Registered one file each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

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

    seasons: observed seasons before its first forecast. packages: importable modules beyond the analytics extra.
    refit_each_origin: cheap enough to be fitted at every backtest origin; otherwise it is fitted once, at the first.
    """

    seasons: float = 1.0
    packages: tuple[str, ...] = ()
    refit_each_origin: bool = True


class Fitted(Protocol):
    """A fitted model. It may be asked from later origins than the one that it was fitted at."""

    def predict(self, history: Values, horizon: int) -> Prediction:
        """Forecasts the `horizon` steps after `history` (oldest first, NaN where nothing was observed)."""
        ...


class Forecaster(Protocol):
    """One way to forecast. Stateless: all that it learns is in what `fit` returns."""

    id: str
    title: str
    needs: Needs

    def fit(self, history: Values, season: int) -> Fitted:
        """Learns from `history` (oldest first, NaN where missing) with `season` steps a day. Raises when it cannot."""
        ...


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
