"""What a dialect is, and reading samples with all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from gpuwatch.model.observations import Observations, Sample, merge
from gpuwatch.registry import Registry


class Dialect(Protocol):
    """One vocabulary. Samples of names that are not in `metrics` are never shown to it."""

    @property
    def metrics(self) -> frozenset[str]:
        """The names of the vocabulary."""
        ...

    def read(self, samples: Sequence[Sample]) -> Observations:
        """Canonical observations of these samples, in any order, duplicates allowed. Never raises on data."""
        ...


DIALECTS: Registry[Dialect] = Registry("dialect", "gpuwatch.dialects")


def observe(samples: Iterable[Sample], window_seconds: int | None = None) -> Observations:
    """Reads `samples` with every dialect; a sample of a name that no dialect knows is left out.

    `window_seconds` is the length of the window behind the samples whose statistic is not "now".
    """
    readers = dict(DIALECTS.items())
    owner = {name: id_ for id_, dialect in readers.items() for name in dialect.metrics}
    shares: dict[str, list[Sample]] = {id_: [] for id_ in readers}
    seen: set[str] = set()
    for sample in samples:
        id_ = owner.get(sample.metric)
        if id_ is not None:
            shares[id_].append(sample)
            seen.add(sample.metric)
    parts = [readers[id_].read(sorted(mine, key=_order)) for id_, mine in shares.items() if mine]
    spoken = Observations(
        dialects=tuple(sorted(id_ for id_, mine in shares.items() if mine)), metrics=tuple(sorted(seen))
    )
    return merge([*parts, spoken], window_seconds)


def _order(sample: Sample) -> tuple[str, str, list[tuple[str, str]], float]:
    """So that series which contradict each other are settled in the same way whatever order a server sends them in."""
    number = sample.value if math.isfinite(sample.value) else -math.inf
    return sample.metric, sample.statistic, sorted(sample.labels.items()), number
