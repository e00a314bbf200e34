"""Which model leads, judged only by errors that had been seen at that time; and how that way of choosing fared.

The reported skill and coverage are those of the whole procedure (choose, then widen), replayed origin by origin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.forecast.backtest import Backtest
from gpuwatch.forecast.forecaster import Values
from gpuwatch.forecast.intervals import LEVELS, around, offsets
from gpuwatch.forecast.team import BASELINE

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
    return leads(test, np.array([known_steps]))[0]


def leads(test: Backtest, known_steps: NDArray[np.int64]) -> list[Lead]:
    """`choose` for several moments at once."""
    rivals = sorted(model for model in test.predicted if model != BASELINE)
    if not rivals:
        return [Lead(BASELINE, "no other model took part")] * known_steps.size
    ratio = np.stack([_ratios(test, model, known_steps) for model in rivals])
    return [_lead(rivals, ratio[:, at]) for at in range(known_steps.size)]


def _lead(rivals: list[str], ratios: Values) -> Lead:
    if np.isnan(ratios).all():
        return Lead(
            BASELINE, f"the daily repeat leads until {MIN_ORIGINS} past forecasts of another model are verified"
        )
    best = int(np.nanargmin(ratios))
    if ratios[best] < MARGIN_RATIO:
        return Lead(rivals[best], f"its error on verified forecasts is {ratios[best]:.2f} of the daily repeat's")
    return Lead(BASELINE, f"no model beats the daily repeat (next: {rivals[best]}, {ratios[best]:.2f} of its error)")


def score(test: Backtest) -> Score:
    """Replays choice and interval at every origin with what was known there; scores the steps that came after."""
    base = test.errors(BASELINE)
    own_sum = base_sum = 0.0
    steps = covered_steps = 0
    covered = dict.fromkeys(LEVELS, 0)
    for row, (origin, chosen) in enumerate(zip(test.origins, leads(test, test.origins), strict=True)):
        lead = chosen.model
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


def _ratios(test: Backtest, model: str, known_steps: NDArray[np.int64]) -> Values:
    """(K,) error of `model` over that of the daily repeat on what was verified at each moment; NaN: too little."""
    own, base = np.abs(test.errors(model)), np.abs(test.errors(BASELINE))
    both = np.isfinite(own) & np.isfinite(base)
    due = test.due.ravel()
    order = np.argsort(due, kind="stable")
    upto = np.searchsorted(due[order], known_steps, side="right")

    def running(amounts: Values) -> Values:
        return np.concatenate([[0.0], np.cumsum(np.where(both, amounts, 0.0).ravel()[order])])[upto]

    first_due = np.where(both, test.due, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    origins = np.searchsorted(np.sort(first_due), known_steps, side="right")
    mine, against = running(own), running(base)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(against > 0, mine / against, np.where(mine > 0, np.inf, 1.0))
    return np.where(origins >= MIN_ORIGINS, ratio, np.nan)
