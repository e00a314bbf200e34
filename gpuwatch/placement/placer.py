"""Places members one by one under a policy: feasibility, ties, and scores kept until a node changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, IntArray
from gpuwatch.fit.fleet_fit import devices_fit, first_devices
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.arrays import INFEASIBLE
from gpuwatch.placement.kernels.counts import LEVEL, NEVER
from gpuwatch.placement.kernels.parts import chance
from gpuwatch.placement.policy import ANY_DEVICE, PolicyContext, make_policy, score_key


@dataclass(frozen=True, slots=True)
class Spot:
    """Where one member goes: a row of the columns, and columns of its devices, for MIG one for each instance."""

    row: int
    shape: DemandShape
    devices: tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    score: IntArray  # (N,) INFEASIBLE where devices or CPU lack; memory is looked at anew each time
    device: IntArray  # (N,)
    seen: int  # changes already taken in


class Placer:
    """Places on `columns`, which it changes.

    `order` (N,) breaks ties between equal scores, lowest first; None takes the order of rows. holds_back: best() leaves
    alone what the policy holds back from a shape, unless it is told where to look; ranked() shows all that fits.
    """

    def __init__(
        self,
        columns: Columns,
        mix: MixTable,
        policy: str,
        *,
        order: IntArray | None = None,
        seed: int = 0,
        holds_back: bool = False,
    ) -> None:
        self.columns = columns
        self._policy = make_policy(policy, PolicyContext(mix=mix, seed=seed))
        self._holds_back = holds_back and self._policy.holds
        self._seed = seed
        self._draw = 0  # placements so far
        self._order = np.arange(len(columns.names)) if order is None else order
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._changed: list[int] = []

    def best(self, shape: DemandShape, allowed: BoolArray | None = None) -> Spot | None:
        """Where the policy puts one member now, among the `allowed` rows; None when it fits nowhere."""
        kept, score = self._scores(shape, allowed)
        if self._holds_back and allowed is None:
            level = self._policy.held(self.columns, shape)
            score = np.where((score > INFEASIBLE) & (level < NEVER), score - level * LEVEL, INFEASIBLE)
        top = score.max(initial=INFEASIBLE)
        if top == INFEASIBLE:
            return None
        tied = np.flatnonzero(score == top)
        turn = self._order[tied]
        if self._policy.random_ties:
            turn = np.array([chance(self._seed, self._draw, int(row)) for row in tied])
        return self._spot(int(tied[turn.argmin()]), shape, kept)

    def ranked(self, shape: DemandShape, allowed: BoolArray | None = None) -> list[Spot]:
        """Every node that fits one member, best first; equal scores go to the fuller node, then the fuller device."""
        kept, score = self._scores(shape, allowed)
        rows = np.flatnonzero(score > INFEASIBLE)
        spots = [self._spot(int(row), shape, kept) for row in rows]
        room = self.columns.left.sum(axis=1)

        def key(spot: Spot) -> tuple[int, int, int, int]:
            device_room = sum(int(self.columns.left[spot.row, device]) for device in spot.devices)
            return -int(score[spot.row]), int(room[spot.row]), device_room, int(self._order[spot.row])

        return sorted(spots, key=key)

    def take(self, spot: Spot) -> None:
        """Books `spot`."""
        self.columns.take(spot.row, spot.shape, spot.devices)
        self._changed.append(spot.row)
        self._draw += 1

    def undo(self, spot: Spot) -> None:
        """Takes back a take(), or ends a member that was placed here."""
        self.columns.give_back(spot.row, spot.shape, spot.devices)
        self._changed.append(spot.row)

    def forget(self, spot: Spot) -> None:
        """Takes back a take() as if it had never been: later chances do not depend on it."""
        self.undo(spot)
        self._draw -= 1

    def restore(self, spot: Spot) -> None:
        """Takes back an undo(): the same member, no new placement."""
        self.columns.take(spot.row, spot.shape, spot.devices)
        self._changed.append(spot.row)

    def take_gang(self, shape: DemandShape, members: int, allowed: BoolArray | None = None) -> list[Spot]:
        """Books all members or none; [] when they do not all fit.

        Members are equal and no device serves more of them by being left for later, so greedy finds a fit if any is.
        """
        taken: list[Spot] = []
        for _ in range(members):
            spot = self.best(shape, allowed)
            if spot is None:
                for earlier in reversed(taken):
                    self.undo(earlier)
                return []
            self.take(spot)
            taken.append(spot)
        return taken

    def _spot(self, row: int, shape: DemandShape, kept: _Kept) -> Spot:
        device = int(kept.device[row])
        devices = first_devices(self.columns, row, shape) if device == ANY_DEVICE else (device,)
        return Spot(row=row, shape=shape, devices=devices)

    def _scores(self, shape: DemandShape, allowed: BoolArray | None) -> tuple[_Kept, IntArray]:
        kept = self._refreshed(shape)
        ok = self.columns.memory_free >= shape.memory_bytes
        if allowed is not None:
            ok &= allowed
        return kept, np.where(ok, kept.score, INFEASIBLE)

    def _refreshed(self, shape: DemandShape) -> _Kept:
        key = score_key(self._policy, shape)
        count = len(self.columns.names)
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept(np.full(count, INFEASIBLE), np.full(count, ANY_DEVICE), seen=0)
            self._kept[key] = kept
            rows = np.arange(count)
        elif self._policy.local:
            rows = np.array(sorted(set(self._changed[kept.seen :])), dtype=np.int64)
        else:
            rows = np.arange(count)
        kept.seen = len(self._changed)
        if len(rows):
            self._rescore(kept, shape, rows)
        return kept

    def _rescore(self, kept: _Kept, shape: DemandShape, rows: IntArray) -> None:
        columns = self.columns
        ok = columns.open[rows] & (columns.cpu_free[rows] >= shape.cpu_millicores) & devices_fit(columns, shape, rows)
        kept.score[rows] = INFEASIBLE
        if ok.any():
            ranking = self._policy.rank(columns, shape, rows[ok], self._draw)
            kept.score[rows[ok]] = ranking.score
            kept.device[rows[ok]] = ranking.device
