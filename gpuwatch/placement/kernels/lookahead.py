"""What typical arrivals would leave unused of one node: the scalar form, with a memory of states seen before."""

from __future__ import annotations

from typing import NamedTuple

from gpuwatch.fit.columns import BoolArray, IntArray
from gpuwatch.placement.kernels.arrays import Ask, State
from gpuwatch.placement.kernels.jit import kernel
from gpuwatch.placement.kernels.parts import roomy

NOTHING = -2  # in place of a device: the node as it stands
SLOTS = 1 << 19  # states remembered; a later one takes the slot of an earlier
WIDEST = 1024  # devices on one node
_MASK = 0x7FFFFFFF


class Arrivals(NamedTuple):
    """S sequences of L arrivals, each one of T shapes."""

    order: IntArray  # (S, L) positions in the arrays below
    gpus: IntArray  # (T,)
    share: IntArray  # (T,) milligpu of each device
    cpu: IntArray  # (T,) millicores
    accepts: BoolArray  # (T, models + 1); the last column is the unknown model (-1)


class Memory(NamedTuple):
    """States by two hashes of 31 bits each, and scratch."""

    first: IntArray  # (SLOTS,) odd; 0 where empty
    second: IntArray  # (SLOTS,)
    unused: IntArray  # (SLOTS,)
    left: IntArray  # (WIDEST,) devices of the state at hand, sorted by what is left, then by model
    model: IntArray  # (WIDEST,)
    filled: IntArray  # (WIDEST,)


@kernel
def unused_with(arrivals: Arrivals, memory: Memory, state: State, ask: Ask, row: int, only: int) -> int:
    """Milligpu unused, summed over the sequences, with the ask on device `only`, on the lowest ones (-1) or NOTHING."""
    width, taken = state.left.shape[1], 0
    for device in range(width):
        left, model = int(state.left[row, device]), int(state.model[row, device])
        takes = device == only or (only == -1 and roomy(state, ask, row, device))
        if takes and taken < ask.gpus:
            left -= ask.share
            taken += 1
        at = device
        while at > 0 and (memory.left[at - 1] > left or (memory.left[at - 1] == left and memory.model[at - 1] > model)):
            memory.left[at], memory.model[at] = memory.left[at - 1], memory.model[at - 1]
            at -= 1
        memory.left[at], memory.model[at] = left, model
    cpu = int(state.cpu_free[row]) - (0 if only == NOTHING else ask.cpu)
    return _remembered(arrivals, memory, width, cpu)


@kernel
def _remembered(arrivals: Arrivals, memory: Memory, width: int, cpu: int) -> int:
    first, second = 1, 2
    for at in range(width + 2):
        if at < width:
            part = int(memory.left[at]) * 4099 + int(memory.model[at]) + 1
        else:
            part = cpu & _MASK if at == width else cpu >> 31
        first = ((first ^ part) * 0x1E3779B1) & _MASK
        first ^= first >> 15
        second = ((second ^ part) * 0x05EBCA6B) & _MASK
        second ^= second >> 13
    slot, first = (first ^ (second << 8)) & (SLOTS - 1), first | 1
    if memory.first[slot] != first or memory.second[slot] != second:
        memory.unused[slot] = _unused(arrivals, memory, width, cpu)
        memory.first[slot], memory.second[slot] = first, second
    return int(memory.unused[slot])


@kernel
def _unused(arrivals: Arrivals, memory: Memory, width: int, cpu: int) -> int:
    total = 0
    for sequence in range(arrivals.order.shape[0]):
        free, idle = cpu, 0
        for device in range(width):
            memory.filled[device] = memory.left[device]
            idle += memory.left[device]
        for step in range(arrivals.order.shape[1]):
            if idle == 0:
                break
            shape = arrivals.order[sequence, step]
            if arrivals.cpu[shape] <= free:
                given = _give(arrivals, memory, width, shape)
                if given >= 0:
                    free -= arrivals.cpu[shape]
                    idle -= given
        total += idle
    return total


@kernel
def _give(arrivals: Arrivals, memory: Memory, width: int, shape: int) -> int:
    """Gives the shape its devices, that with least left or the lowest ones; milligpu given, -1 when some lack."""
    gpus, share = arrivals.gpus[shape], arrivals.share[shape]
    best, found = -1, 0
    for device in range(width):
        if gpus > 0 and memory.filled[device] >= share and arrivals.accepts[shape, memory.model[device]]:
            found += 1
            if best < 0 or memory.filled[device] < memory.filled[best]:
                best = device
    if found < gpus:
        return -1
    if gpus == 1:
        memory.filled[best] -= share
        return int(share)
    taken = 0
    for device in range(width):
        if taken == gpus:
            break
        if memory.filled[device] >= share and arrivals.accepts[shape, memory.model[device]]:
            memory.filled[device] -= share
            taken += 1
    return int(gpus * share)
