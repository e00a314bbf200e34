"""Samples that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuwatch_exporters.slurm.family import Family, Sample

OTHER = "(other)"
SEVERAL = "(several)"
NONE = "(none)"  # an empty label would be no label


class Tally:
    """Numbers by family and labels; adding to the same labels sums."""

    def __init__(self) -> None:
        self._held: dict[tuple[Family, tuple[str, ...]], float] = {}

    def add(self, family: Family, *labels: str, number: float = 1) -> None:
        """Adds to a sample; the first time makes it."""
        key = family, labels
        self._held[key] = self._held.get(key, 0) + number

    def most(self, family: Family, *labels: str, number: float) -> None:
        """Keeps the largest number."""
        key = family, labels
        self._held[key] = max(self._held.get(key, number), number)

    def samples(self) -> Iterator[Sample]:
        """All of them, by labels within a family."""
        for (family, labels), number in sorted(self._held.items(), key=lambda pair: (pair[0][0].name, pair[0][1])):
            yield Sample(family, labels, number)


def bounded(names: Iterable[str], most: int) -> dict[str, str]:
    """Label by name: the first `most` names in their order keep their own, the others share one."""
    ordered = sorted(set(names))
    return {name: name if at < most else OTHER for at, name in enumerate(ordered)}
