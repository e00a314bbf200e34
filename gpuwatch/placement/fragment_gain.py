"""The NumPy form of policies that look at how much the fragment of a node grows: fgd, and those that build on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, bounded
from gpuwatch.fit.fleet_fit import roomy_devices
from gpuwatch.fragmentation.fragments import Fragments
from gpuwatch.fragmentation.kernel import MixTable, fragment_of_nodes
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI
from gpuwatch.placement.policy import ANY_DEVICE, Ranking, shares_one_device


class FragmentGain:
    """Ranks nodes by `score` of F before less F after; a single device is tried on every one with room.

    score: (P,) gains in milligpu -> (P,) whole scores of 0 or more. Where two devices of a node score alike, the first
    is taken.
    """

    def __init__(self, mix: MixTable, score: Callable[[FloatArray], IntArray]) -> None:
        self._mix = mix
        self._score = score
        self._frozen: tuple[Columns, Fragments] | None = None

    def freeze(self, columns: Columns) -> None:
        """Keeps F of every node as it stands."""
        self._frozen = columns, Fragments.of(self._mix, columns, np.arange(len(columns.names)))

    def rank(self, columns: Columns, shape: DemandShape, rows: IntArray) -> Ranking:
        """Scores the nodes `rows`, each of which has the devices and the CPU."""
        known, at = self._known(columns, rows)
        score, device = np.empty(len(rows), dtype=np.int64), np.full(len(rows), ANY_DEVICE, dtype=np.int64)
        alike = known.uniform[at]
        for here, rank in ((alike, self._rank_alike), (~alike, self._rank_any)):
            if here.any():
                found = rank(columns, shape, rows[here], known, at[here])
                score[here], device[here] = found.score, found.device
        return Ranking(score=score, device=device)

    def _known(self, columns: Columns, rows: IntArray) -> tuple[Fragments, IntArray]:
        if self._frozen is not None and self._frozen[0] is columns:
            return self._frozen[1], rows
        return Fragments.of(self._mix, columns, rows), np.arange(len(rows))

    def _rank_alike(
        self, columns: Columns, shape: DemandShape, rows: IntArray, known: Fragments, at: IntArray
    ) -> Ranking:
        """Of nodes with free devices of one model, by look-up."""
        before, anywhere = known.before[at], np.full(len(rows), ANY_DEVICE, dtype=np.int64)
        devices = 0 if shape.mig_profile else shape.gpus
        # A share of no device means nothing, and a hand-written snapshot may hold any whole number.
        share = bounded(shape.milligpu_per_gpu) if devices > 0 else MILLI
        if not shares_one_device(shape) and share == MILLI:
            after = known.after(at, np.full(len(rows), share), share, devices, shape.cpu_millicores)
            return Ranking(score=self._score(before - after), device=anywhere)
        if not shares_one_device(shape):
            return self._rank_any(columns, shape, rows, known, at)
        left = np.ascontiguousarray(columns.left[rows].T)
        node, device = _distinct(left, share)
        after = known.after(at[node], left[device, node], share, 1, shape.cpu_millicores)
        score = np.full(left.shape, -1, dtype=np.int64)
        score[device, node] = self._score(before[node] - after)
        return Ranking(*_best(score))

    def _rank_any(
        self, columns: Columns, shape: DemandShape, rows: IntArray, known: Fragments, at: IntArray
    ) -> Ranking:
        before = known.before[at]
        if not shares_one_device(shape):
            after = _minus(columns.left[rows], _lowest(roomy_devices(columns, shape, rows), shape), shape)
            score = self._score(before - self._fragment(columns, shape, rows, after))
            return Ranking(score=score, device=np.full(len(rows), ANY_DEVICE, dtype=np.int64))
        # One line per pair (node, device). A device just like an earlier one on its node cannot score higher.
        node, device = np.nonzero(_first_of_kind(roomy_devices(columns, shape, rows), columns, rows))
        after = columns.left[rows[node]]
        after[np.arange(len(node)), device] -= shape.milligpu_per_gpu
        score = np.full(columns.left[rows].shape, -1, dtype=np.int64)
        score[node, device] = self._score(before[node] - self._fragment(columns, shape, rows[node], after))
        best = score.argmax(axis=1)
        return Ranking(score=score[np.arange(len(rows)), best], device=best)

    def _fragment(self, columns: Columns, shape: DemandShape, rows: IntArray, left: IntArray) -> FloatArray:
        return fragment_of_nodes(self._mix, left, columns.model[rows], columns.cpu_free[rows] - shape.cpu_millicores)


def _best(score: IntArray) -> tuple[IntArray, IntArray]:
    """(score, device) of the highest on each node, the lowest device on ties; score: (W, R)."""
    top, best = score[0].copy(), np.zeros(score.shape[1], dtype=np.int64)
    for device in range(1, len(score)):  # argmax over the first axis would walk across memory
        best[score[device] > top] = device
        np.maximum(top, score[device], out=top)
    return top, best


def _distinct(left: IntArray, share: int) -> tuple[IntArray, IntArray]:
    """(node, device) of every device with room that has not the same left as an earlier one; left: (W, R)."""
    first = left >= share
    for later in range(1, len(left)):
        for earlier in range(later):
            first[later] &= left[later] != left[earlier]
    device, node = np.nonzero(first)
    return node, device


def _lowest(roomy: BoolArray, shape: DemandShape) -> BoolArray:
    """The lowest devices that a member of several (or of none) takes."""
    if shape.mig_profile:
        return np.zeros_like(roomy)
    return roomy & (roomy.cumsum(axis=1) <= shape.gpus)


def _minus(left: IntArray, taken: BoolArray, shape: DemandShape) -> IntArray:
    return left - taken * bounded(shape.milligpu_per_gpu)


def _first_of_kind(roomy: BoolArray, columns: Columns, rows: IntArray) -> BoolArray:
    """(rows, W) devices with room that differ in model or room left from every earlier one on their node."""
    width = columns.left.shape[1]
    kind = columns.left[rows] * (len(columns.models) + 1) + columns.model[rows]
    same = (kind[:, :, None] == kind[:, None, :]) & roomy[:, None, :]
    earlier = np.tril(np.ones((width, width), dtype=np.bool_), k=-1)
    first: BoolArray = roomy & ~(same & earlier).any(axis=2)
    return first
