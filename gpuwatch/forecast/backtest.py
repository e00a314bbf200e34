"""Rolling origins: what each forecaster would have said at past hours, and how far off it was.

Nothing is learned from the future: an error counts at an origin only when its step had been observed by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuwatch.forecast.forecaster import Learned, Needs, Values
from gpuwatch.forecast.team import WINDOW_SEASONS, Team

ORIGIN_STRIDE = 5  # no divisor of 24: every hour of the day becomes an origin in turn


@dataclass(slots=True)
class Backtest:
    """Past forecasts of several models on one series.

    origins: (O,) number of steps known at each origin. actual: (O, H) what came, NaN where unobserved.
    predicted: model id -> (O, H), NaN where the model said nothing. dropped: model id -> why it takes no part.
    """

    origins: NDArray[np.int64]
    actual: Values
    predicted: dict[str, Values] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    _errors: dict[str, Values] = field(default_factory=dict)

    def errors(self, model: str) -> Values:
        """actual - predicted, (O, H), NaN where either is missing."""
        if model not in self._errors:
            self._errors[model] = self.actual - self.predicted[model]
        return self._errors[model]

    @property
    def due(self) -> NDArray[np.int64]:
        """(O, H): how many steps must be known for each forecast step to be over."""
        steps: NDArray[np.int64] = self.origins[:, None] + np.arange(1, self.actual.shape[1] + 1)[None, :]
        return steps

    def verified(self, known_steps: int) -> NDArray[np.bool_]:
        """(O, H): which forecast steps were over, and so could be checked, when `known_steps` steps were known."""
        return self.due <= known_steps


def run_backtest(values: Values, season: int, horizon: int, team: Team, first: int) -> Backtest:
    """Backtests the members of `team` on `values` from origin `first` on, over the newest WINDOW_SEASONS seasons.

    A model that raises, or gives a number that is no forecast, is dropped with its reason and disturbs nobody.
    """
    start = max(first, values.size - WINDOW_SEASONS * season)
    # Counted back from the newest origin, so that the freshest errors are always among them.
    origins = np.arange(values.size - 1, start - 1, -ORIGIN_STRIDE, dtype=np.int64)[::-1]
    padded = np.concatenate([values, np.full(horizon, np.nan)])
    actual = np.array([padded[o : o + horizon] for o in origins]).reshape(origins.size, horizon)
    test = Backtest(origins=origins, actual=actual, dropped=dict(team.dropped))
    for name, learned in team.tested.items():
        needs = team.members[name].needs
        unseen = values.size - team.held_out_steps if needs.fleet else 0  # earlier steps were learned from
        try:
            test.predicted[name] = _past_forecasts(values, season, horizon, learned, needs, origins, unseen)
        except Exception as err:  # a model is a guest: its failure is told, the others stand
            test.dropped[name] = f"{type(err).__name__}: {err}"
    return test


def _past_forecasts(
    values: Values,
    season: int,
    horizon: int,
    learned: Learned,
    needs: Needs,
    origins: NDArray[np.int64],
    unseen: int,
) -> Values:
    out = np.full((origins.size, horizon), np.nan)
    fitted, fitted_at = None, 0
    for row, origin in enumerate(origins.tolist()):
        history = values[:origin]
        if origin < unseen or np.isfinite(history).sum() < needs.seasons * season:
            continue
        if fitted is None or origin - fitted_at >= needs.refit_seasons * season:
            fitted, fitted_at = learned.fit(history, season), origin
        out[row] = checked(fitted.predict(history, horizon).mean, history)
    return out


def checked(mean: Values, history: Values) -> Values:
    """Forecast clipped at 0; ValueError when a step is infinite or beyond ten times anything seen."""
    seen = history[np.isfinite(history)]
    ceiling = 10 * max(1.0, float(seen.max(initial=0.0)))
    if np.isinf(mean).any() or (mean[np.isfinite(mean)] > ceiling).any():
        raise ValueError("its forecast exceeds ten times the highest value seen")
    return np.maximum(mean, 0.0)
