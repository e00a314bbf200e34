"""Typical arrivals drawn from a demand mix, and what they would leave unused of many nodes: the NumPy form."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from gpuwatch.fit.columns import BoolArray, IntArray
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.placement.kernels.lookahead import SLOTS, WIDEST, Arrivals, Memory

SEQUENCES = 32  # with 16 the lead over fgd is a tenth of a point smaller, with 64 no larger
STEPS = 48  # fills an empty node of eight devices with typical jobs, refusals included
_CHUNK_NODES = 8192  # arrays of (devices, nodes) that stay in the cache
_FULL = np.iinfo(np.int32).max

Left = npt.NDArray[np.int32]  # (W, R) milligpu


def arrivals_of(table: MixTable) -> Arrivals:
    """The same sequences for the same mix. Each follows the mix evenly and differs in order, so that few suffice.

    Their starting points are spread evenly too: drawn ones can miss a rare shape in every sequence, and then the nodes
    that it needs look worthless.
    """
    weight = [*table.weight.tolist(), *(share for _, share in table.cpu_only)]
    group, cpu_only = table.group, len(table.cpu_only)
    bound = np.cumsum(weight) if weight else np.ones(1)
    rng = random.Random(0)
    sequences = []
    for number in range(SEQUENCES):
        start = (number + 0.5) / SEQUENCES
        at = np.searchsorted(bound, bound[-1] * (np.arange(STEPS) + start) / STEPS, side="right")
        sequence = at.clip(0, max(len(weight) - 1, 0)).tolist()
        rng.shuffle(sequence)
        sequences.append(sequence)
    none = np.zeros(cpu_only, dtype=np.int64)
    accepts = np.concatenate([table.accepts[:, group].T > 0, np.zeros((cpu_only, len(table.accepts)), dtype=np.bool_)])
    cpu = np.concatenate([table.cpu, np.array([cpu for cpu, _ in table.cpu_only], dtype=np.int64)])
    return Arrivals(
        order=np.array(sequences, dtype=np.int64) if weight else np.zeros((1, 0), dtype=np.int64),
        gpus=np.concatenate([table.gpus, none]),
        share=np.concatenate([table.share[group], none]),
        cpu=cpu,
        accepts=accepts,
    )


def empty_memory() -> Memory:
    """Nothing remembered. The pages are taken when first written to."""
    return Memory(*(np.zeros(size, dtype=np.int64) for size in (SLOTS, SLOTS, SLOTS, WIDEST, WIDEST, WIDEST)))


def unused(arrivals: Arrivals, left: IntArray, model: IntArray, cpu: IntArray) -> IntArray:
    """(R,) milligpu left unused, summed over the sequences. left, model: (R, W); cpu: (R,)."""
    width = left.shape[1]
    order = np.lexsort((model, left), axis=1)  # the order of devices makes no difference, and many nodes are alike
    alike = [np.take_along_axis(part, order, axis=1) for part in (left, model)]
    states, back = np.unique(np.column_stack([*alike, cpu]), axis=0, return_inverse=True)
    chunks = np.array_split(states, max(1, -(-len(states) // _CHUNK_NODES)))
    parts = [_unused(arrivals, part[:, :width], part[:, width:-1], part[:, -1]) for part in chunks]
    found: IntArray = np.concatenate(parts)[back.reshape(-1)]
    return found


def _unused(arrivals: Arrivals, left: IntArray, model: IntArray, cpu: IntArray) -> IntArray:
    # One line per device, and every node at the same arrival: what is done then is done along memory.
    start = np.ascontiguousarray(left.T, dtype=np.int32)
    shapes = np.unique(arrivals.order)
    kinds = {int(at): arrivals.accepts[at][model.T] for at in shapes if arrivals.gpus[at] > 0}  # (W, R) each
    total = np.zeros(len(cpu), dtype=np.int64)
    for sequence in arrivals.order.tolist():
        filled, free = start.copy(), cpu.copy()
        for shape in sequence:
            if shape in kinds:
                _arrive(filled, free, kinds[shape], arrivals.gpus[shape], arrivals.share[shape], arrivals.cpu[shape])
            else:
                free -= np.where(arrivals.cpu[shape] <= free, arrivals.cpu[shape], 0)
        total += filled.sum(axis=0)
    return total


def _arrive(filled: Left, free: IntArray, accepted: BoolArray, gpus: int, share: int, cpu: int) -> None:
    """One job on every node that has room for it. One device: that with least left; several: the lowest."""
    roomy = filled >= share
    roomy &= accepted
    rows = np.flatnonzero((roomy.sum(axis=0, dtype=np.int32) >= gpus) & (free >= cpu))
    if not len(rows):
        return
    free[rows] -= cpu
    if gpus == 1:
        filled[np.where(roomy, filled, _FULL)[:, rows].argmin(axis=0), rows] -= share
    else:
        here = roomy[:, rows]
        filled[:, rows] -= (here & (here.cumsum(axis=0) <= gpus)) * share
