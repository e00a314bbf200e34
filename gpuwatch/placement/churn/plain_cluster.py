"""The cluster that jobs come to, over the NumPy placer: for where numba is not installed, and for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.fit.columns import Columns, FloatArray, IntArray
from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.placement.churn.cluster import ANYWHERE, Operations
from gpuwatch.placement.churn.stream import Kind
from gpuwatch.placement.kernels.arrays import asks_of
from gpuwatch.placement.placer import Placer, Spot
from gpuwatch.placement.replay import Field


class PlainCluster:
    """Has what a ScalarCluster has, as far as the loop reads it."""

    def __init__(self, field: Field, policy: str, kinds: Sequence[Kind], order: IntArray, seed: int) -> None:
        self.state: Columns = field.columns.copy()
        self.placer = Placer(self.state, field.table, policy, order=order, seed=seed, holds_back=True)
        self.shapes = [kind.shape for kind in kinds]
        self.asks = asks_of(field.columns, self.shapes)
        self.ask = np.arange(len(kinds))
        self.memory = np.array([shape.memory_bytes for shape in self.shapes], dtype=np.int64)
        self._table = field.table
        self._fragment = self._fragments(slice(None))
        self.total = np.array([self.state.left.sum(), self._fragment.sum()], dtype=np.float64)
        self.found: Spot | None = None

    def changed(self, row: int, milligpu: int) -> None:
        """Brings the totals up to date; `milligpu` were given back."""
        now = self._fragments(slice(row, row + 1))[0]
        self.total[0] += milligpu
        self.total[1] += now - self._fragment[row]
        self._fragment[row] = now

    def _fragments(self, rows: slice) -> FloatArray:
        return fragment_of_nodes(self._table, self.state.left[rows], self.state.model[rows], self.state.cpu_free[rows])


def plain_find(cluster: PlainCluster, kind: int, only: int) -> int:
    """See Operations."""
    allowed = None if only == ANYWHERE else np.arange(len(cluster.state.names)) == only
    cluster.found = cluster.placer.best(cluster.shapes[kind], allowed)
    return -1 if cluster.found is None else cluster.found.row


def plain_take(cluster: PlainCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    spot = cluster.found
    assert spot is not None
    assert spot.row == row
    cluster.placer.take(spot)
    devices[:] = -1
    devices[: len(spot.devices)] = spot.devices
    cluster.changed(row, -spot.shape.milligpu)


def plain_untake(cluster: PlainCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    cluster.placer.forget(_spot(cluster, kind, row, devices))
    cluster.changed(row, cluster.shapes[kind].milligpu)


def plain_again(cluster: PlainCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    cluster.placer.restore(_spot(cluster, kind, row, devices))
    cluster.changed(row, -cluster.shapes[kind].milligpu)


def plain_give(cluster: PlainCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    cluster.placer.undo(_spot(cluster, kind, row, devices))
    cluster.changed(row, cluster.shapes[kind].milligpu)


def _spot(cluster: PlainCluster, kind: int, row: int, devices: IntArray) -> Spot:
    return Spot(row=int(row), shape=cluster.shapes[kind], devices=tuple(int(at) for at in devices if at >= 0))


PLAIN = Operations(plain_find, plain_take, plain_untake, plain_give, plain_again)
