"""The cluster that jobs come to: what the event loop does to it, and its form for numba.

The other form, over the NumPy placer, is in plain_cluster.py; the loop cannot tell them apart. `devices` (W,) are
columns, -1 behind the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuwatch.fit.columns import FloatArray, IntArray
from gpuwatch.placement.churn.stream import Kind
from gpuwatch.placement.kernels.arrays import Asks, Kept, Mix, State, ask_at, asks_of, kept_for, mix_of, state_of
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.stream import best, book, book_again, give_back, refresh
from gpuwatch.placement.policy import Policy, score_key
from gpuwatch.placement.replay import Field

ANYWHERE = -1
_CHANGES = 1 << 16  # changes that are kept before every score is taken anew


class Operations(NamedTuple):
    """What the loop does to the cluster.

    find(cluster, kind, only) -> the best row, or `only` when that is not ANYWHERE and fits; -1: nowhere.
    take(cluster, kind, row, devices) books what find() found and tells the devices; untake(...) undoes that as if it
    had never been; give(...) gives them back; again(...) undoes that.
    """

    find: Callable[..., Any]
    take: Callable[..., Any]
    untake: Callable[..., Any]
    give: Callable[..., Any]
    again: Callable[..., Any]


class ScalarCluster(NamedTuple):
    """For compiled loops. C kinds of job ask with K different asks."""

    state: State
    mix: Mix
    asks: Asks
    ask: IntArray  # (C,) row in `asks`
    memory: IntArray  # (C,) bytes
    kept: Kept
    total: FloatArray  # (2,) free milligpu and F of all nodes
    local: bool
    random_ties: bool
    seed: int
    tables: Any


def scalar_cluster(field: Field, policy: Policy, kinds: Sequence[Kind], order: IntArray, seed: int) -> ScalarCluster:
    """The field's empty cluster."""
    state = state_of(field.columns, field.table, order, policy.holds)
    keys = [score_key(policy, kind.shape) for kind in kinds]
    first = {key: kind.shape for key, kind in zip(keys, kinds, strict=True)}
    number = {key: at for at, key in enumerate(first)}
    return ScalarCluster(
        state=state,
        mix=mix_of(field.table),
        asks=asks_of(field.columns, list(first.values())),
        ask=np.array([number[key] for key in keys], dtype=np.int64),
        memory=np.array([kind.shape.memory_bytes for kind in kinds], dtype=np.int64),
        kept=kept_for(len(first), len(field.columns.names), _CHANGES),
        total=state.total,
        local=policy.local,
        random_ties=policy.random_ties,
        seed=seed,
        tables=policy.tables,
    )


@kernel
def _find(score: Any, cluster: ScalarCluster, kind: int, only: int) -> int:
    at = cluster.ask[kind]
    ask = ask_at(cluster.asks, at, cluster.memory[kind])
    refresh(score, cluster.state, cluster.mix, ask, cluster.kept, at, cluster.local, cluster.seed, cluster.tables)
    if only >= 0:
        return only
    return best(cluster.state, ask, cluster.kept, at, cluster.random_ties, cluster.seed)


def take(cluster: ScalarCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    _make_room(cluster.kept)
    ask = ask_at(cluster.asks, cluster.ask[kind], cluster.memory[kind])
    device = cluster.kept.device[cluster.ask[kind], row]
    book(cluster.state, cluster.mix, ask, cluster.kept, row, device, devices)


def again(cluster: ScalarCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    _make_room(cluster.kept)
    ask = ask_at(cluster.asks, cluster.ask[kind], cluster.memory[kind])
    book_again(cluster.state, cluster.mix, ask, cluster.kept, row, devices)


def give(cluster: ScalarCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    _give(cluster, kind, row, devices)


def untake(cluster: ScalarCluster, kind: int, row: int, devices: IntArray) -> None:
    """See Operations."""
    _give(cluster, kind, row, devices)
    cluster.kept.counts[1] -= 1  # chance depends on placements, and this one was none


@kernel
def _give(cluster: ScalarCluster, kind: int, row: int, devices: IntArray) -> None:
    _make_room(cluster.kept)
    ask = ask_at(cluster.asks, cluster.ask[kind], cluster.memory[kind])
    give_back(cluster.state, cluster.mix, ask, cluster.kept, row, devices)


@kernel
def _make_room(kept: Kept) -> None:
    """Forgets all scores when the list of changes is full: the next look takes each anew."""
    if kept.counts[0] < len(kept.changed):
        return
    kept.counts[0] = 0
    kept.seen[:] = -1
    kept.stamp[:] = -1


def scalar_operations(score: Callable[..., Any]) -> Operations:
    """Those of a ScalarCluster under a policy's kernel, compiled or not."""

    def find(cluster: ScalarCluster, kind: int, only: int) -> int:
        return _find(score, cluster, kind, only)

    return Operations(find, take, untake, give, again)
