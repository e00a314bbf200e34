"""Split conformal intervals from past errors, per bucket of steps ahead: ordered, nested, never negative."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpuwatch.forecast.forecaster import Values

LEVELS = (0.8, 0.95)
BUCKET_ENDS = (1, 3, 6, 12, 24)  # errors grow with the steps ahead: each bucket has its own
MIN_ERRORS = 5  # a bucket with fewer borrows the errors of all buckets
HALF_UNIT = 0.5  # GPUs: no interval is narrower than one schedulable unit, however constant the past was


def buckets(horizon: int) -> NDArray[np.int64]:
    """(horizon,): bucket number of each step."""
    return np.searchsorted(np.array(BUCKET_ENDS), np.arange(1, horizon + 1))


def offsets(errors: Values, horizon: int) -> dict[float, tuple[Values, Values]] | None:
    """Level -> (low, high) offsets to add to a mean, each (horizon,).

    `errors`: (O, horizon) of actual - predicted, NaN where unknown. None when there are fewer than MIN_ERRORS errors.
    Offsets are the signed order statistics at (n + 1) * tail, outward: with too few errors for a tail, the largest.
    """
    every = np.sort(errors[np.isfinite(errors)])
    if every.size < MIN_ERRORS:
        return None
    numbers = buckets(horizon)
    low = {level: np.empty(horizon) for level in LEVELS}
    high = {level: np.empty(horizon) for level in LEVELS}
    for number in np.unique(numbers):
        steps = numbers == number
        found = errors[:, steps]
        own = np.sort(found[np.isfinite(found)])
        sample = own if own.size >= MIN_ERRORS else every
        for level in LEVELS:
            low[level][steps], high[level][steps] = _tails(sample, level)
    return {level: (low[level], high[level]) for level in LEVELS}


def around(mean: Values, offset: dict[float, tuple[Values, Values]]) -> dict[float, tuple[Values, Values]]:
    """Level -> (low, high) bounds around `mean`: at least HALF_UNIT to each side, low >= 0, wider levels outside."""
    out: dict[float, tuple[Values, Values]] = {}
    low, high = mean - HALF_UNIT, mean + HALF_UNIT
    for level in sorted(offset):
        low = np.minimum(low, mean + offset[level][0])
        high = np.maximum(high, mean + offset[level][1])
        out[level] = (np.maximum(low, 0.0), high)
    return out


def _tails(ordered: Values, level: float) -> tuple[float, float]:
    tail = (ordered.size + 1) * (1 - level) / 2
    at = max(0, math.floor(tail + 1e-9) - 1)  # 20 * (1 - 0.8) / 2 is a hair under 2
    return float(ordered[at]), float(ordered[-1 - at])
