"""Which cards NVLink can join: those of one generation, whatever labels say."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns
from gpuwatch.model.catalogue import card
from gpuwatch.model.cluster import UNKNOWN_MODEL


class Generations:
    """The cards of a cluster by generation, and the nodes that they are on.

    joined: generation -> its cards here that NVLink can join, None for one without a model; a card that the catalogue
    does not know is a generation of its own. nameless: (N,) nodes whose devices are all of no known model.
    """

    def __init__(self, columns: Columns) -> None:
        there = columns.gpu_index >= 0
        kinds = (*enumerate(columns.models), (-1, None))
        on = [((columns.model == code) & there).any(axis=1) for code, _ in kinds]
        self._models = columns.models
        self._on: BoolArray = np.array(on, dtype=np.bool_)  # (models + 1, N)
        self.nameless: BoolArray = np.logical_and.reduce(~self._on[:-1], axis=0) & self._on[-1]
        joined: dict[str, tuple[str | None, ...]] = {}
        for code, name in kinds:
            found = card(name)
            if self._on[code].any() and (found is None or found.nvlink_version is not None):
                joined[generation(name)] = (*joined.get(generation(name), ()), name)
        self.joined = {each: joined[each] for each in sorted(joined)}

    def on_node(self, models: tuple[str, ...]) -> BoolArray:
        """(N,) nodes that have a device of `models`, whatever its state; of no known model for ()."""
        found: BoolArray = np.logical_or.reduce(self._on[[self._models.index(name) for name in models] or [-1]], axis=0)
        return found


def generation(model: str | None) -> str:
    """The generation of a card; an unknown one stands for itself."""
    found = card(model)
    return found.generation if found else model or UNKNOWN_MODEL
