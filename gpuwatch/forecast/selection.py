"""Which model leads, judged only by errors that had been seen at that time; and how that way of choosing fared.

The reported skill and coverage are those of the whole procedure (choose, then widen), replayed origin by origin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.forecast.backtest import BASELINE, Backtest
from gpuwatch.forecast.forecaster import Values
from gpuwatch.forecast.intervals import LEVELS, around, offsets

MIN_ORIGINS = 12  # fewer verified forecasts than this do not unseat the baseline
MARGIN_RATIO = 0.98  # a challenger must be this much better: a tie keeps the baseline


@dataclass(frozen=True, slots=True)
class Lead:
    """The model that leads at one origin and why."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """How the procedure fared on held-out steps. None where nothing could be scored."""

    skill: float | None
    coverage: dict[float, float]
    steps: int


def choose(test: Backtest, known_steps: int) -> Lead:
    """The model with the lowest error relative to the daily repeat, over forecasts verified by `known_steps`."""
    verified = test.verified(known_steps)
    base = np.abs(test.errors(BASELINE))
    ratios: dict[str, float] = {}
    for model in test.predicted:
        ratio = _ratio(np.abs(test.errors(model)), base, verified)
        if model != BASELINE and ratio is not None:
            ratios[model] = ratio
    if not ratios:
        return Lead(BASELINE, "the baseline leads until 12 past forecasts of another model are verified")
    best = min(sorted(ratios), key=lambda model: ratios[model])
    if ratios[best] < MARGIN_RATIO:
        return Lead(best, f"its error on verified forecasts is {ratios[best]:.2f} of the daily repeat's")
    return Lead(BASELINE, f"no model beats the daily repeat (next: {best}, {ratios[best]:.2f} of its error)")


def score(test: Backtest) -> Score:
    """Replays choice and interval at every origin with what was known there; scores the steps that came after."""
    base = test.errors(BASELINE)
    own_sum = base_sum = 0.0
    steps = covered_steps = 0
    covered = dict.fromkeys(LEVELS, 0)
    for row, origin in enumerate(test.origins):
        lead = choose(test, int(origin)).model
        errors = test.errors(lead)
        came = np.isfinite(errors[row]) & np.isfinite(base[row])
        if not came.any():
            continue
        own_sum += float(np.abs(errors[row][came]).sum())
        base_sum += float(np.abs(base[row][came]).sum())
        steps += int(came.sum())
        bounds = bounds_at(test, lead, int(origin), test.predicted[lead][row])
        if bounds is None:
            continue
        covered_steps += int(came.sum())
        actual = test.actual[row]
        for level, (low, high) in bounds.items():
            covered[level] += int(((low <= actual) & (actual <= high) & came).sum())
    skill = 1 - own_sum / base_sum if base_sum > 0 else None
    coverage = {level: covered[level] / covered_steps for level in LEVELS} if covered_steps else {}
    return Score(skill=skill, coverage=coverage, steps=steps)


def bounds_at(test: Backtest, model: str, known_steps: int, mean: Values) -> dict[float, tuple[Values, Values]] | None:
    """Interval bounds around `mean` from the model's errors verified by `known_steps`; None when these are too few."""
    errors = np.where(test.verified(known_steps), test.errors(model), np.nan)
    offset = offsets(errors, mean.size)
    return None if offset is None else around(mean, offset)


def _ratio(errors: Values, base: Values, verified: NDArray[np.bool_]) -> float | None:
    both = verified & np.isfinite(errors) & np.isfinite(base)
    if int(both.any(axis=1).sum()) < MIN_ORIGINS:
        return None
    against = float(base[both].sum())
    own = float(errors[both].sum())
    return own / against if against > 0 else (1.0 if own == 0 else float("inf"))
