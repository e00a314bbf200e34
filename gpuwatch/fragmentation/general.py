"""The fragments by comparing every shape with every node: the form for nodes of mixed models, and for any mix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuwatch.fit.columns import FloatArray, IntArray
from gpuwatch.fragmentation import uniform
from gpuwatch.fragmentation.uniform import Lookup, States

if TYPE_CHECKING:
    from gpuwatch.fragmentation.kernel import MixTable

CAUSES = ("no_access", "gpu_lacking", "cpu_lacking", "both_lacking")

_CHUNK_NODES = 2048  # bounds the (nodes, devices, groups) arrays: tens of MB whatever the size of the fleet


@dataclass(frozen=True, slots=True)
class _Cases:
    """Per node and group or shape, before any weight."""

    accepted: FloatArray  # (R, W, G) left on accepted devices, else 0
    low: FloatArray  # (R, W, G) the same, only where less than g is left
    gpu_ok: FloatArray  # (R, M) 1.0 where enough devices have g left
    cpu_ok: FloatArray  # (R, M)


def fragment_of_states(
    table: MixTable, lookup: Lookup, states: States, left: IntArray, model: IntArray, cpu_free: IntArray
) -> FloatArray:
    """(R,) the published F of `states`, which are those of left, model and cpu_free."""
    total = uniform.fragments(lookup, states, float(table.weight.sum()) + table.cpu_only_weight)
    if not states.uniform.all():
        others = np.flatnonzero(~states.uniform)
        total[others] = fragment_of_any(table, left[others], model[others], cpu_free[others])
    return total


def fragment_of_any(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(R,) the published F of each node state. left, model: (R, W); cpu_free: (R,)."""
    free = left.sum(axis=1).astype(np.float64)
    total: FloatArray = free * table.cpu_only_weight
    if not len(table.share):
        return total
    for rows in chunks(len(left)):
        cases = _cases(table, left[rows], model[rows], cpu_free[rows])
        runs = (cases.gpu_ok * cases.cpu_ok * table.weight) @ table.one_hot  # (R, G)
        accepted, low = cases.accepted.sum(axis=1), cases.low.sum(axis=1)
        denied = (free[rows, None] - accepted) * table.group_weight
        total[rows] += (denied + accepted * (table.group_weight - runs) + low * runs).sum(axis=1)
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


def per_shape_of_any(table: MixTable, left: IntArray, model: IntArray, cpu_free: IntArray) -> FloatArray:
    """(M,) the unweighted fragment of each GPU shape, summed over all nodes."""
    total = np.zeros(len(table.at))
    if not len(table.share):
        return total
    for rows in chunks(len(left)):
        cases = _cases(table, left[rows], model[rows], cpu_free[rows])
        accepted = cases.accepted.sum(axis=1)[:, table.group]
        low = cases.low.sum(axis=1)[:, table.group]
        denied = left[rows].sum() - accepted.sum(axis=0)
        total += denied + np.where(cases.gpu_ok * cases.cpu_ok > 0, low, accepted).sum(axis=0)
    return total


def chunks(count: int) -> Iterator[slice]:
    """Slices of `count` nodes, few enough at a time."""
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
