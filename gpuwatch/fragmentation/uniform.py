"""The same fragments, by table look-up, for nodes whose free devices are all of one model: nearly every node there is.

On such a node a shape's fate hangs on three numbers alone: how many devices have its share left, how much is left on
these, and how much CPU. So the weight of all shapes that would run there is a table over (model, share, devices with
room, CPU step), made once for a mix, and a node costs one look-up for each distinct share instead of a comparison for
each shape. Weights are multiples of 2**-30, so that this gives the very numbers that the general form gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuwatch.fit.columns import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from gpuwatch.fragmentation.kernel import MixTable

_LARGEST = 2**21  # entries of a look-up table; a mix that needs more (thousands of shares and CPUs) goes without


@dataclass(frozen=True, slots=True)
class Lookup:
    """Weights of the GPU shapes of a mix by what a node can give them, for nodes of up to W devices.

    S distinct shares and C distinct CPU needs, both ascending; T = models + 1, the last is the unknown model. A CPU
    step is the number of needs that are met, a device count runs from 0 to W.
    """

    share: IntArray  # (S,) milligpu
    cpu: IntArray  # (C,) millicores
    share_of: IntArray  # (M,) position in `share` of each shape
    runs: FloatArray  # (T, S, W + 1, C + 1) of shapes that have both
    with_gpus: FloatArray  # (T, S, W + 1) of shapes that have the devices, whatever the CPU
    with_cpu: FloatArray  # (T, S, C + 1) of shapes that have the CPU, whatever the devices
    accepted: FloatArray  # (T,) of shapes that accept the model


@dataclass(frozen=True, slots=True)
class States:
    """R node states by what the look-ups ask. Where `uniform` is False the rest means nothing."""

    uniform: BoolArray  # (R,) no two free devices differ in model
    model: IntArray  # (R,) of the free devices, -1 unknown
    free: IntArray  # (R,) milligpu
    step: IntArray  # (R,) CPU needs that are met
    count: IntArray  # (S, R) devices with room for each share
    room: IntArray  # (S, R) milligpu left on these


def lookup_of(table: MixTable, width: int) -> Lookup | None:
    """The look-up tables for nodes of up to `width` devices; None when the mix is too varied, or asks for no share."""
    if width not in table.lookups:
        table.lookups[width] = _made(table, width)
    return table.lookups[width]


def _made(table: MixTable, width: int) -> Lookup | None:
    share, share_of = np.unique(table.share[table.group], return_inverse=True)
    cpu, cpu_of = np.unique(table.cpu, return_inverse=True)
    size = (len(table.accepts), len(share), width + 1, len(cpu) + 1)
    if not len(share) or share[0] < 1 or np.prod(size) > _LARGEST:
        return None
    weight = table.accepts[:, table.group] * table.weight  # (T, M)
    runs = np.zeros(size)
    here = table.gpus <= width  # a shape that wants more devices than any node has never runs
    for model, of_shape in enumerate(weight):
        np.add.at(runs[model], (share_of[here], table.gpus[here], cpu_of[here] + 1), of_shape[here])
    runs = runs.cumsum(axis=2)
    with_gpus = runs.sum(axis=3)
    with_cpu = np.zeros((size[0], size[1], size[3]))
    for model, of_shape in enumerate(weight):
        np.add.at(with_cpu[model], (share_of, cpu_of + 1), of_shape)
    return Lookup(
        share=share,
        cpu=cpu,
        share_of=share_of.reshape(-1),
        runs=runs.cumsum(axis=3),
        with_gpus=with_gpus,
        with_cpu=with_cpu.cumsum(axis=2),
        accepted=weight.sum(axis=1),
    )


def states_of(lookup: Lookup, left: IntArray, model: IntArray, cpu_free: IntArray) -> States:
    """left, model: (R, W); cpu_free: (R,). Devices with nothing left take no part, so their model does not matter."""
    # One line per device, in few bytes: sums over devices then run along memory.
    by_device = np.ascontiguousarray(left.T, dtype=np.int32)
    models = np.ascontiguousarray(model.T, dtype=np.int32)
    holding = by_device > 0
    first = np.where(holding, models, np.int32(-2)).max(axis=0, initial=-2)
    count = np.empty((len(lookup.share), left.shape[0]), dtype=np.int64)
    room = np.empty_like(count)
    for at, share in enumerate(lookup.share):
        roomy = by_device >= share
        count[at] = roomy.sum(axis=0, dtype=np.int32)
        room[at] = (by_device * roomy).sum(axis=0, dtype=np.int32)
    return States(
        uniform=((models == first) | ~holding).all(axis=0),
        model=np.maximum(first, -1).astype(np.int64),
        free=by_device.sum(axis=0, dtype=np.int64),
        step=np.searchsorted(lookup.cpu, cpu_free, side="right"),
        count=count,
        room=room,
    )


def weight_that_runs(lookup: Lookup, states: States) -> FloatArray:
    """(S, R) weight of the shapes of each share that would run."""
    _, shares, counts, steps = lookup.runs.shape
    model = np.where(states.model < 0, len(lookup.accepted) - 1, states.model)
    at = states.count * steps + (model * (shares * counts * steps) + states.step)
    at += (np.arange(shares) * (counts * steps))[:, None]
    runs: FloatArray = lookup.runs.ravel()[at]
    return runs


def fragments(lookup: Lookup, states: States, whole: float) -> FloatArray:
    """(R,) the published F; `whole` is the weight of the whole mix, CPU-only shapes included."""
    runs = weight_that_runs(lookup, states)
    stuck: FloatArray = states.free * whole - (runs * states.room).sum(axis=0)
    return stuck


def fragments_if(
    lookup: Lookup,
    states: States,
    whole: float,
    at: IntArray,
    device: IntArray,
    taken: int,
    devices: int,
    cpu: IntArray,
) -> FloatArray:
    """(P,) the published F of nodes `at` (P,), were `taken` milligpu given away of each of `devices` equal devices.

    device: (P,) what each of these devices has left before. cpu: (R,) CPU left on the nodes afterward.
    """
    model = np.where(states.model < 0, len(lookup.accepted) - 1, states.model)
    _, shares, counts, steps = lookup.runs.shape
    start = (model * (shares * counts * steps) + np.searchsorted(lookup.cpu, cpu, side="right"))[at]
    rest, runs = device - taken, lookup.runs.ravel()
    stuck = np.asarray((states.free[at] - devices * taken) * whole, dtype=np.float64)
    for nth, share in enumerate(lookup.share):
        had, has = device >= share, rest >= share
        count = states.count[nth][at] - devices * (had & ~has)
        room = states.room[nth][at] - devices * np.where(has, taken, device * had)
        stuck -= runs[start + count * steps + nth * (counts * steps)] * room
    return stuck


def causes(lookup: Lookup, states: States, whole: float) -> FloatArray:
    """(4, R) weighted fragment by cause in the order of kernel.CAUSES; `whole` is the weight of all GPU shapes."""
    model = np.where(states.model < 0, len(lookup.accepted) - 1, states.model)
    runs = weight_that_runs(lookup, states)
    shares = np.arange(len(lookup.share))[:, None]
    gpus = lookup.with_gpus[model[None, :], shares, states.count].sum(axis=0)
    cpu = lookup.with_cpu[model[None, :], shares, states.step[None, :]].sum(axis=0)
    both, accepted = runs.sum(axis=0), lookup.accepted[model]
    beside = (runs * (states.free - states.room)).sum(axis=0)  # devices without room for a share that runs elsewhere
    return np.stack(
        [
            states.free * (whole - accepted),
            states.free * (cpu - both) + beside,
            states.free * (gpus - both),
            states.free * (accepted - gpus - cpu + both),
        ]
    )


def per_shape(table: MixTable, lookup: Lookup, states: States, cpu_free: IntArray) -> FloatArray:
    """(M,) the unweighted fragment of each GPU shape, summed over the nodes where `uniform`."""
    alike = states.uniform
    model = np.where(alike, states.model, -1)
    stuck = np.full(len(table.at), float(states.free[alike].sum()))
    for at, (gpus, cpu, group) in enumerate(zip(table.gpus, table.cpu, table.group, strict=True)):
        share = lookup.share_of[at]
        runs = (states.count[share] >= gpus) & (cpu_free >= cpu) & (table.accepts[model, group] > 0) & alike
        stuck[at] -= states.room[share] @ runs
    return stuck
