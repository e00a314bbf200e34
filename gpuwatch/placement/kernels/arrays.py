"""What the scalar kernels read: plain tuples of arrays, which compiled code takes as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, bounded, size_of
from gpuwatch.fragmentation.kernel import MixTable, fragment_of_nodes
from gpuwatch.model.jobs import DemandShape
from gpuwatch.placement.kernels.counts import Holding, holding_of
from gpuwatch.placement.kernels.jit import kernel


class State(NamedTuple):
    """The cluster as it stands: N nodes by W devices. The first six arrays change as members come and go."""

    left: IntArray  # (N, W) milligpu
    cpu_free: IntArray  # (N,) millicores
    memory_free: IntArray  # (N,) bytes
    running: IntArray  # (N, SIZES)
    fragment: FloatArray  # (N,) the published F of each node, milligpu
    total: FloatArray  # (2,) free milligpu and F of all nodes
    model: IntArray  # (N, W), -1 unknown
    usable: BoolArray  # (N, W)
    open: BoolArray  # (N,)
    cpu_known: BoolArray  # (N,)
    memory_known: BoolArray  # (N,)
    cpu_capacity: IntArray  # (N,)
    memory_capacity: IntArray  # (N,)
    order: IntArray  # (N,) place of each node among equals, lowest first
    scratch: IntArray  # (W,) for whoever runs: kernels cannot allocate
    holding: Holding


class Mix(NamedTuple):
    """A MixTable with its M shapes sorted by group; group g has the shapes start[g] up to start[g + 1]."""

    share: IntArray  # (G,)
    accepts: BoolArray  # (models + 1, G); the last row is the unknown model (-1)
    start: IntArray  # (G + 1,)
    gpus: IntArray  # (M,)
    cpu: IntArray  # (M,)
    weight: FloatArray  # (M,)
    group_weight: FloatArray  # (G,)
    cpu_only_weight: float


class Ask(NamedTuple):
    """What one member asks for."""

    gpus: int
    share: int  # milligpu of each device
    cpu: int  # millicores
    memory: int  # bytes
    size: int  # size_of the shape
    anything: bool  # every model is accepted, unknown ones too
    accepts: BoolArray  # (models + 1,)


class Asks(NamedTuple):
    """K asks beside one another; fields as in Ask but for memory, which every arrival brings itself."""

    gpus: IntArray  # (K,)
    share: IntArray
    cpu: IntArray
    size: IntArray
    anything: BoolArray
    accepts: BoolArray  # (K, models + 1)


class Kept(NamedTuple):
    """Scores that stay valid until a node changes: one row for each of K kinds of ask."""

    score: IntArray  # (K, N) INFEASIBLE where devices or CPU lack
    device: IntArray  # (K, N)
    seen: IntArray  # (K,) changes already taken in; -1 before the first look
    changed: IntArray  # (changes,) rows, in order
    counts: IntArray  # (2,) changes so far, placements so far
    stamp: IntArray  # (N,) scratch: which look saw the row last


INFEASIBLE = np.iinfo(np.int64).min


def state_of(columns: Columns, table: MixTable, order: IntArray, holds: bool = False) -> State:
    """A state of its own, starting where `columns` stands. holds: whether the policy holds nodes back."""
    fragment = fragment_of_nodes(table, columns.left, columns.model, columns.cpu_free)
    return State(
        left=columns.left.copy(),
        cpu_free=columns.cpu_free.copy(),
        memory_free=columns.memory_free.copy(),
        running=columns.running.copy(),
        fragment=fragment,
        total=np.array([columns.left.sum(), fragment.sum()], dtype=np.float64),
        model=columns.model,
        usable=columns.usable,
        open=columns.open,
        cpu_known=columns.cpu_known,
        memory_known=columns.memory_known,
        cpu_capacity=columns.cpu_capacity,
        memory_capacity=columns.memory_capacity,
        order=np.ascontiguousarray(order, dtype=np.int64),
        scratch=np.zeros(columns.left.shape[1], dtype=np.int64),
        holding=holding_of(columns, holds),
    )


def mix_of(table: MixTable) -> Mix:
    """The table in the order that the scalar fragment reads."""
    by_group = np.argsort(table.group, kind="stable")
    return Mix(
        share=table.share,
        accepts=table.accepts > 0,
        start=np.searchsorted(table.group[by_group], np.arange(len(table.share) + 1)).astype(np.int64),
        gpus=table.gpus[by_group],
        cpu=table.cpu[by_group],
        weight=table.weight[by_group],
        group_weight=table.group_weight,
        cpu_only_weight=table.cpu_only_weight,
    )


def asks_of(columns: Columns, shapes: Sequence[DemandShape]) -> Asks:
    """`shapes` for states of these columns. MIG shapes have no scalar form."""
    named = (*columns.models, None)
    return Asks(
        gpus=np.array([bounded(shape.gpus) for shape in shapes], dtype=np.int64),
        share=np.array([bounded(shape.milligpu_per_gpu) for shape in shapes], dtype=np.int64),
        cpu=np.array([bounded(shape.cpu_millicores) for shape in shapes], dtype=np.int64),
        size=np.array([size_of(shape) for shape in shapes], dtype=np.int64),
        anything=np.array([not shape.gpu_models for shape in shapes], dtype=np.bool_),
        accepts=np.array(
            [[not shape.gpu_models or name in shape.gpu_models for name in named] for shape in shapes], dtype=np.bool_
        ).reshape(len(shapes), len(named)),
    )


@kernel
def ask_at(asks: Asks, at: int, memory: int) -> Ask:
    """One of the asks, with the memory that this member wants."""
    return Ask(asks.gpus[at], asks.share[at], asks.cpu[at], memory, asks.size[at], asks.anything[at], asks.accepts[at])


def kept_for(asks: int, nodes: int, changes: int) -> Kept:
    """Nothing kept yet. `changes`: an upper bound on members that will come and go."""
    return Kept(
        score=np.full((asks, nodes), INFEASIBLE, dtype=np.int64),
        device=np.full((asks, nodes), -1, dtype=np.int64),
        seen=np.full(asks, -1, dtype=np.int64),
        changed=np.zeros(changes, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
        stamp=np.full(nodes, -1, dtype=np.int64),
    )
