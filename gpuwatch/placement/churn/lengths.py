"""How long jobs run: drawn, or as the trace tells; and the one source of chance of a run's stream."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from gpuwatch.model.jobs import Job
from gpuwatch.placement.churn.settings import ChurnSettings

LENGTH = "length"


def rng_for(seed: int, purpose: str) -> random.Random:
    """Each purpose draws from a source of its own, so that one option changes one thing."""
    return random.Random(f"{purpose} {seed}")


class Lengths:
    """Durations in seconds: log-normal, or those that the trace tells."""

    def __init__(self, jobs: Sequence[Job], told: Sequence[int | None], settings: ChurnSettings, seed: int) -> None:
        self._told = told if settings.times == "durations" else None
        self._known = [length for length in told if length]
        self._median, self._sigma = settings.median_seconds, settings.sigma
        self._rng = rng_for(seed, LENGTH)

    def mean(self, at: int) -> float:
        """Expected duration of the job at `at` of the list."""
        if self._told is None:
            return self._median * math.exp(self._sigma**2 / 2)
        return self._told[at] or sum(self._known) / len(self._known)

    def of(self, at: int) -> float:
        """A duration for an arrival of it."""
        if self._told is None:
            return self._median * math.exp(self._sigma * self._rng.gauss(0, 1))
        return self._told[at] or self._known[self._rng.randrange(len(self._known))]

    def standing(self, count: int, order: Iterator[int]) -> Iterator[int]:
        """Whom a look into the cluster at a random moment would meet: longer jobs more often, by their length."""
        if self._told is None:
            yield from (next(order) for _ in range(count))
            return
        weights = [self.mean(at) for at in range(len(self._told))]
        yield from self._rng.choices(range(len(self._told)), weights=weights, k=count)

    def left_of(self, at: int) -> float:
        """How long a job that is met so still runs: its length, weighted by length, times a uniform share."""
        if self._told is None:
            weighted = self._median * math.exp(self._sigma**2 + self._sigma * self._rng.gauss(0, 1))
        else:
            weighted = self._told[at] or self._rng.choices(self._known, weights=self._known)[0]
        return weighted * self._rng.random()
