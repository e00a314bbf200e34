"""The fragment of free capacity, by cause, for a whole mix on many node states at once.

A shape of a mix needs k devices with a share g free on each, c CPU, and an accepted model. On one node it cannot take:
all free capacity of devices whose model it does not accept (no_access); all the rest when fewer than k devices have g
left (gpu_lacking), the node has less than c CPU (cpu_lacking), or both (both_lacking); and when it would run, the
devices with less than g left (booked as gpu_lacking, as published). CPU-only shapes take no free GPU at all.

Shapes are grouped by (g, accepted models): what is summed over devices is the same for a group, and what differs, k
and c, is a comparison per node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import FloatArray, IntArray, bounded
from gpuwatch.fragmentation import uniform
from gpuwatch.fragmentation.general import (
    CAUSES,
    chunks,
    fragment_by_cause,
    fragment_of_any,
    fragment_of_states,
    per_shape_of_any,
)
from gpuwatch.fragmentation.uniform import Lookup, lookup_of, states_of
from gpuwatch.model.jobs import DemandShape


@dataclass(frozen=True, slots=True)
class MixTable:
    """A mix as arrays: M GPU shapes in G groups. Weights are as given but for 2**-30; nothing is renormalized."""

    at: IntArray  # (M,) position of each GPU shape in the list that the table was made of
    weight: FloatArray  # (M,)
    gpus: IntArray  # (M,) k
    cpu: IntArray  # (M,) c, millicores
    group: IntArray  # (M,)
    one_hot: FloatArray  # (M, G)
    share: IntArray  # (G,) g, milligpu
    accepts: FloatArray  # (models + 1, G) 1.0 where accepted; the last row is the unknown model (code -1)
    cpu_only_weight: float
    cpu_only: tuple[tuple[int, float], ...] = ()  # (millicores, weight) of each CPU-only shape
    lookups: dict[int, Lookup | None] = field(init=False, default_factory=dict, compare=False)  # by devices on a node

    @property
    def group_weight(self) -> FloatArray:
        """(G,) the weight of each group's shapes together."""
        total: FloatArray = self.weight @ self.one_hot
        return total


def mix_table(models: tuple[str, ...], shapes: list[DemandShape], weights: list[float]) -> MixTable:
    """The table of `shapes` with their `weights`, for states whose model codes are positions in `models`."""
    weights = [_dyadic(weight) for weight in weights]
    with_gpus = [at for at, shape in enumerate(shapes) if shape.gpus > 0]
    keys = [(shapes[at].milligpu_per_gpu, shapes[at].gpu_models) for at in with_gpus]
    groups = sorted(set(keys))
    group = np.array([groups.index(key) for key in keys], dtype=np.int64)
    accepts = [[float(not accepted or name in accepted) for _, accepted in groups] for name in (*models, None)]
    return MixTable(
        at=np.array(with_gpus, dtype=np.int64),
        weight=np.array([weights[at] for at in with_gpus], dtype=np.float64),
        gpus=np.array([bounded(shapes[at].gpus) for at in with_gpus], dtype=np.int64),
        cpu=np.array([bounded(shapes[at].cpu_millicores) for at in with_gpus], dtype=np.int64),
        group=group,
        one_hot=np.eye(len(groups))[group].reshape(len(with_gpus), len(groups)),
        share=np.array([bounded(share) for share, _ in groups], dtype=np.int64),
        accepts=np.array(accepts, dtype=np.float64).reshape(len(models) + 1, len(groups)),
        cpu_only_weight=float(sum(w for shape, w in zip(shapes, weights, strict=True) if shape.gpus <= 0)),
        cpu_only=tuple(
            (bounded(shape.cpu_millicores), w) for shape, w in zip(shapes, weights, strict=True) if shape.gpus <= 0
        ),
    )


def _dyadic(weight: float) -> float:
    """`weight` to the nearest 2**-30, so that sums of weights times milligpu are exact and equal in any order."""
    return round(weight * 2**30) / 2**30


def fragment_of_nodes(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(R,) the published F of each node state, CPU-only shapes included. left, model: (R, W); cpu_free: (R,)."""
    lookup = lookup_of(table, left.shape[1])
    if lookup is None:
        return fragment_of_any(table, left, model, cpu_free)
    return fragment_of_states(table, lookup, states_of(lookup, left, model, cpu_free), left, model, cpu_free)


def cause_totals(
    table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray, cell: IntArray, cells: int
) -> FloatArray:
    """(4, cells) weighted fragment by cause, GPU shapes only, summed over the devices of each cell; cell: (R, W)."""
    lookup = lookup_of(table, left.shape[1])
    others = np.arange(len(left))
    total = np.zeros((len(CAUSES), cells))
    if lookup is not None:
        states = states_of(lookup, left, model, cpu_free)
        # Free devices of one node and one model are in one cell: that of the emptiest is as good as any.
        home = cell[np.arange(len(left)), left.argmax(axis=1)]
        for at, amounts in enumerate(uniform.causes(lookup, states, float(table.weight.sum()))):
            total[at] += np.bincount(home, weights=amounts * states.uniform, minlength=cells)
        others = np.flatnonzero(~states.uniform)
    for rows in chunks(len(others)):
        some = others[rows]
        for at, part in enumerate(fragment_by_cause(table, left[some], model[some], cpu_free[some]).values()):
            total[at] += np.bincount(cell[some].ravel(), weights=part.ravel(), minlength=cells)
    return total


def fragment_per_shape(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(M,) the unweighted fragment of each GPU shape, summed over all nodes."""
    lookup = lookup_of(table, left.shape[1])
    if lookup is None:
        return per_shape_of_any(table, left, model, cpu_free)
    states = states_of(lookup, left, model, cpu_free)
    total = uniform.per_shape(table, lookup, states, cpu_free)
    others = np.flatnonzero(~states.uniform)
    return total + per_shape_of_any(table, left[others], model[others], cpu_free[others])
