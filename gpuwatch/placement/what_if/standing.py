"""The index and the fits of a cluster as it stands, and as placements would leave it: only touched nodes are anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuwatch.fit.columns import Columns, IntArray
from gpuwatch.fit.fleet_fit import fits
from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.fragmentation.report import Stranded
from gpuwatch.model.mix import DemandMix
from gpuwatch.placement.placer import Spot
from gpuwatch.placement.what_if.frozen import Frozen


@dataclass(frozen=True, slots=True)
class After:
    """What one placement leaves."""

    fragmentation_index: float | None  # None: nothing is free then, or no GPU demand is known
    stranded_delta_milligpu: float
    blocked_shapes: tuple[str, ...]  # fitted somewhere before, fit nowhere after


class Standing:
    """Made once for a state; F of the cluster is a sum over nodes, so that a placement changes its own nodes' part."""

    def __init__(self, frozen: Frozen, mix: DemandMix) -> None:
        self._columns, self._table = frozen.columns, frozen.table
        self.scope = Stranded.on(frozen.columns, frozen.table).overall()
        self._gpu_weight = float(frozen.table.weight.sum())
        columns = frozen.columns
        self._fragment = fragment_of_nodes(frozen.table, columns.left, columns.model, columns.cpu_free)
        self._shapes = [entry.shape for entry in mix.shapes]
        room = [frozen.capacity.members(shape) > 0 for shape in self._shapes]
        self._fits = np.array(room, dtype=np.bool_).reshape(len(room), len(columns.names))
        self._fitting: IntArray = self._fits.sum(axis=1)  # nodes that fit each shape

    def after(self, placements: Sequence[Sequence[Spot]]) -> list[After]:
        """What each of `placements` alone would leave."""
        touched = [sorted({spot.row for spot in spots}) for spots in placements]
        rows = np.array([row for each in touched for row in each], dtype=np.int64)
        part = self._columns.part(rows)
        starts = np.cumsum([0, *(len(each) for each in touched)])
        for start, mine, spots in zip(starts, touched, placements, strict=False):
            at = {row: int(start) + position for position, row in enumerate(mine)}
            for spot in spots:
                part.take(at[spot.row], spot.shape, spot.devices)
        grown = fragment_of_nodes(self._table, part.left, part.model, part.cpu_free) - self._fragment[rows]
        freed = (part.left.sum(axis=1) - self._columns.left[rows].sum(axis=1)).astype(np.float64)
        return [
            self._one(part, rows, np.arange(start, end), float(grown[start:end].sum()), int(freed[start:end].sum()))
            for start, end in pairwise(starts)
        ]

    def _one(self, part: Columns, rows: IntArray, mine: IntArray, grown: float, freed: int) -> After:
        free = self.scope.free_milligpu + freed
        known = self._gpu_weight > 0
        # The CPU-only class is no part of the index: its share of what F grew by is taken out again.
        delta = (grown - freed * self._table.cpu_only_weight) / self._gpu_weight if known else 0.0
        index = 100 * (self.scope.stranded_milligpu + delta) / free if free and known else None
        return After(index, delta, self._blocked(part, rows, mine))

    def _blocked(self, part: Columns, rows: IntArray, mine: IntArray) -> tuple[str, ...]:
        """A shape can only vanish where every node that fits it is touched."""
        here = self._fits[:, rows[mine]].sum(axis=1)
        doubtful = np.flatnonzero((here == self._fitting) & (here > 0))
        lost = [self._shapes[at] for at in doubtful if not fits(part, self._shapes[at], mine).any()]
        return tuple(shape.label for shape in lost)
