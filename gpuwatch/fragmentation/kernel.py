"""The fragment of free capacity, by cause, for a whole mix on many node states at once.

A shape of a mix needs k devices with a share g free on each, c CPU, and an accepted model. On one node it cannot take:
all free capacity of devices whose model it does not accept (no_access); all the rest when fewer than k devices have g
left (gpu_lacking), the node has less than c CPU (cpu_lacking), or both (both_lacking); and when it would run, the
devices with less than g left (booked as gpu_lacking, as published). CPU-only shapes take no free GPU at all.

Shapes are grouped by (g, accepted models): what is summed over devices is the same for a group, and what differs, k
and c, is a comparison per node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, bounded
from gpuwatch.fragmentation import uniform
from gpuwatch.fragmentation.uniform import Lookup, States, lookup_of, states_of
from gpuwatch.model.jobs import DemandShape

CAUSES = ("no_access", "gpu_lacking", "cpu_lacking", "both_lacking")

_CHUNK_NODES = 2048  # bounds the (nodes, devices, groups) arrays: tens of MB whatever the size of the fleet


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
    lookups: dict[int, Lookup | None] = field(init=False, default_factory=dict, compare=False)  # by devices on a node

    @property
    def group_weight(self) -> FloatArray:
        """(G,) the weight of each group's shapes together."""
        total: FloatArray = self.weight @ self.one_hot
        return total


@dataclass(frozen=True, slots=True)
class _Cases:
    """Per node and group or shape, before any weight."""

    accepted: FloatArray  # (R, W, G) left on accepted devices, else 0
    low: FloatArray  # (R, W, G) the same, only where less than g is left
    gpu_ok: FloatArray  # (R, M) 1.0 where enough devices have g left
    cpu_ok: FloatArray  # (R, M)


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
    )


def _dyadic(weight: float) -> float:
    """`weight` to the nearest 2**-30, so that sums of weights times milligpu are exact and equal in any order."""
    return round(weight * 2**30) / 2**30


def fragment_of_nodes(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(R,) the published F of each node state, CPU-only shapes included. left, model: (R, W); cpu_free: (R,)."""
    lookup = lookup_of(table, left.shape[1])
    if lookup is None:
        return _fragment_of_any(table, left, model, cpu_free)
    return _fragment_of_states(table, lookup, states_of(lookup, left, model, cpu_free), left, model, cpu_free)


def _fragment_of_states(
    table: MixTable, lookup: Lookup, states: States, left: IntArray, model: IntArray, cpu_free: IntArray
) -> FloatArray:
    total = uniform.fragments(lookup, states, float(table.weight.sum()) + table.cpu_only_weight)
    if not states.uniform.all():
        others = np.flatnonzero(~states.uniform)
        total[others] = _fragment_of_any(table, left[others], model[others], cpu_free[others])
    return total


def _fragment_of_any(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    free = left.sum(axis=1).astype(np.float64)
    total: FloatArray = free * table.cpu_only_weight
    if not len(table.share):
        return total
    for rows in _chunks(len(left)):
        cases = _cases(table, left[rows], model[rows], cpu_free[rows])
        runs = (cases.gpu_ok * cases.cpu_ok * table.weight) @ table.one_hot  # (R, G)
        accepted, low = cases.accepted.sum(axis=1), cases.low.sum(axis=1)
        denied = (free[rows, None] - accepted) * table.group_weight
        total[rows] += (denied + accepted * (table.group_weight - runs) + low * runs).sum(axis=1)
    return total


@dataclass(frozen=True, slots=True)
class Fragments:
    """The published F of R node states, and what it would be with one member more on nodes of one model."""

    before: FloatArray  # (R,)
    uniform: BoolArray  # (R,) nodes for which after() speaks
    _cpu_free: IntArray
    _whole: float
    _lookup: Lookup | None
    _states: States | None

    @classmethod
    def of(cls, table: MixTable, columns: Columns, rows: IntArray) -> Fragments:
        """The nodes `rows` (R,) as they stand."""
        left, model, cpu_free = columns.left[rows], columns.model[rows], columns.cpu_free[rows]
        lookup, whole = lookup_of(table, left.shape[1]), float(table.weight.sum()) + table.cpu_only_weight
        if lookup is None:
            nowhere = np.zeros(len(rows), dtype=np.bool_)
            return cls(_fragment_of_any(table, left, model, cpu_free), nowhere, cpu_free, whole, None, None)
        states = states_of(lookup, left, model, cpu_free)
        before = _fragment_of_states(table, lookup, states, left, model, cpu_free)
        return cls(before, states.uniform, cpu_free, whole, lookup, states)

    def after(self, at: IntArray, device: IntArray, taken: int, devices: int, cpu: int) -> FloatArray:
        """(P,) F of the nodes `at` (P,), all `uniform`, with `taken` milligpu of each of `devices` equal devices and
        `cpu` millicores given away; device: (P,) what each of these devices has left before."""
        assert self._lookup is not None
        assert self._states is not None
        left_over = self._cpu_free - bounded(cpu)
        return uniform.fragments_if(self._lookup, self._states, self._whole, at, device, taken, devices, left_over)


def fragment_by_cause(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> dict[str, FloatArray]:
    """Cause -> (R, W) weighted fragment on each device, GPU shapes only."""
    if not len(table.share):
        return {cause: np.zeros(left.shape) for cause in CAUSES}
    cases = _cases(table, left, model, cpu_free)
    gpu_ok, cpu_ok = cases.gpu_ok, cases.cpu_ok

    def spread(where: FloatArray, amounts: FloatArray) -> FloatArray:
        by_group = (where * table.weight) @ table.one_hot
        spread_out: FloatArray = np.einsum("rg,rwg->rw", by_group, amounts)
        return spread_out

    denied: FloatArray = (left[:, :, None] - cases.accepted) @ table.group_weight
    return {
        "no_access": denied,
        "gpu_lacking": spread((1 - gpu_ok) * cpu_ok, cases.accepted) + spread(gpu_ok * cpu_ok, cases.low),
        "cpu_lacking": spread(gpu_ok * (1 - cpu_ok), cases.accepted),
        "both_lacking": spread((1 - gpu_ok) * (1 - cpu_ok), cases.accepted),
    }


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
    for rows in _chunks(len(others)):
        some = others[rows]
        for at, part in enumerate(fragment_by_cause(table, left[some], model[some], cpu_free[some]).values()):
            total[at] += np.bincount(cell[some].ravel(), weights=part.ravel(), minlength=cells)
    return total


def fragment_per_shape(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(M,) the unweighted fragment of each GPU shape, summed over all nodes."""
    lookup = lookup_of(table, left.shape[1])
    if lookup is None:
        return _per_shape_of_any(table, left, model, cpu_free)
    states = states_of(lookup, left, model, cpu_free)
    total = uniform.per_shape(table, lookup, states, cpu_free)
    others = np.flatnonzero(~states.uniform)
    return total + _per_shape_of_any(table, left[others], model[others], cpu_free[others])


def _per_shape_of_any(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    total = np.zeros(len(table.at))
    if not len(table.share):
        return total
    for rows in _chunks(len(left)):
        cases = _cases(table, left[rows], model[rows], cpu_free[rows])
        accepted = cases.accepted.sum(axis=1)[:, table.group]
        low = cases.low.sum(axis=1)[:, table.group]
        denied = left[rows].sum() - accepted.sum(axis=0)
        total += denied + np.where(cases.gpu_ok * cases.cpu_ok > 0, low, accepted).sum(axis=0)
    return total


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_NODES) for start in range(0, count, _CHUNK_NODES))


def _cases(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> _Cases:
    access = table.accepts[model]  # (R, W, G); code -1 reads the last row
    roomy = left[:, :, None] >= table.share
    accepted = left[:, :, None] * access
    enough = (roomy * access).sum(axis=1)[:, table.group] >= table.gpus
    return _Cases(
        accepted=accepted,
        low=accepted * ~roomy,
        gpu_ok=enough.astype(np.float64),
        cpu_ok=(cpu_free[:, None] >= table.cpu).astype(np.float64),
    )
