"""The fragment of free capacity, by cause, for a whole mix on many node states at once.

A shape of a mix needs k devices with a share g free on each, c CPU, and an accepted model. On one node it cannot take:
all free capacity of devices whose model it does not accept (no_access); all the rest when fewer than k devices have g
left (gpu_lacking), the node has less than c CPU (cpu_lacking), or both (both_lacking); and when it would run, the
devices with less than g left (booked as gpu_lacking, as published). CPU-only shapes take no free GPU at all.

Shapes are grouped by (g, accepted models): what is summed over devices is the same for a group, and what differs, k
and c, is a comparison per node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import FloatArray, IntArray, bounded
from gpuwatch.model.jobs import DemandShape

CAUSES = ("no_access", "gpu_lacking", "cpu_lacking", "both_lacking")


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
    free = left.sum(axis=1).astype(np.float64)
    if not len(table.share):
        return np.asarray(free * table.cpu_only_weight, dtype=np.float64)
    cases = _cases(table, left, model, cpu_free)
    runs = (cases.gpu_ok * cases.cpu_ok * table.weight) @ table.one_hot  # (R, G)
    accepted, low = cases.accepted.sum(axis=1), cases.low.sum(axis=1)
    stuck = (free[:, None] - accepted) * table.group_weight + accepted * (table.group_weight - runs) + low * runs
    total: FloatArray = stuck.sum(axis=1) + free * table.cpu_only_weight
    return total


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


def fragment_per_shape(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(M,) the unweighted fragment of each GPU shape, summed over all nodes."""
    if not len(table.share):
        return np.zeros(0)
    cases = _cases(table, left, model, cpu_free)
    accepted = cases.accepted.sum(axis=1)[:, table.group]
    low = cases.low.sum(axis=1)[:, table.group]
    denied = left.sum() - accepted.sum(axis=0)
    total: FloatArray = denied + np.where(cases.gpu_ok * cases.cpu_ok > 0, low, accepted).sum(axis=0)
    return total


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
