"""What a policy that holds nodes back counts with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray

HOLD = -1  # in place of a row: the kernel tells, in holding.level, what it holds back from this ask
TAKE, LAST, NEVER = 0, 1, 9  # take it gladly; only when nothing of a lower level fits; not at all
LEVEL = 1 << 40  # more than scores differ


class Holding(NamedTuple):
    """What a policy that holds nodes back counts with; nodes alike in devices, CPU and model are one of Q kinds."""

    level: IntArray  # (N,) TAKE, LAST (and deeper) or NEVER for the ask at hand; empty: the policy holds nothing back
    kind: IntArray  # (N,)
    devices: IntArray  # (Q,) usable devices of each node
    nodes: IntArray  # (Q,) how many there are
    model: IntArray  # (Q,) of the first usable device, -1 unknown
    whole: IntArray  # (Q,) scratch: nodes on which nothing runs to speak of
    limit: IntArray  # (Q,) scratch: the level of those
    need: FloatArray  # (models + 1,) scratch: milligpu held for whole-node jobs, by model
    scarce: BoolArray  # (models + 1,) scratch: models that are held back
    room: IntArray  # (models + 1,) scratch: milligpu left, by model
    running: IntArray  # (SIZES,) scratch: members running everywhere, by size


def holding_of(columns: Columns, holds: bool) -> Holding:
    """Counters for these columns, empty ones for a policy that holds nothing back."""
    rows = slice(None) if holds else slice(0)
    usable = columns.usable[rows]
    devices = usable.sum(axis=1)
    model = columns.model[rows][np.arange(len(usable)), usable.argmax(axis=1)]
    alike = np.stack([devices, columns.cpu_capacity[rows], np.where(devices > 0, model, -1)], axis=1)
    kinds, kind, nodes = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    models = len(columns.models) + 1
    return Holding(
        level=np.zeros(len(usable), dtype=np.int64),
        kind=kind.reshape(-1).astype(np.int64),
        devices=np.ascontiguousarray(kinds[:, 0]),
        nodes=nodes.astype(np.int64),
        model=np.ascontiguousarray(kinds[:, 2]),
        whole=np.zeros(len(kinds), dtype=np.int64),
        limit=np.zeros(len(kinds), dtype=np.int64),
        need=np.zeros(models),
        scarce=np.zeros(models, dtype=np.bool_),
        room=np.zeros(models, dtype=np.int64),
        running=np.zeros(columns.running.shape[1], dtype=np.int64),
    )
