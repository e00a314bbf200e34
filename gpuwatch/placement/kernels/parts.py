"""Fit, fragment and chance for one node: the parts that policies and loops are made of."""

from __future__ import annotations

from gpuwatch.fit.columns import IntArray
from gpuwatch.model.units import MILLI
from gpuwatch.placement.kernels.arrays import Ask, Mix, State
from gpuwatch.placement.kernels.jit import kernel

_MASK = 0xFFFFFFFF


@kernel
def roomy(state: State, ask: Ask, row: int, device: int) -> bool:
    """Whether this device has room for one share and an accepted model."""
    if not state.usable[row, device] or state.left[row, device] < ask.share:
        return False
    return ask.anything or bool(ask.accepts[state.model[row, device]])


@kernel
def like_earlier(state: State, ask: Ask, row: int, device: int) -> bool:
    """Whether an earlier device that the ask could share stands exactly like this one: it cannot score lower."""
    for other in range(device):
        same = state.left[row, other] == state.left[row, device] and state.model[row, other] == state.model[row, device]
        if same and roomy(state, ask, row, other):
            return True
    return False


@kernel
def fits(state: State, ask: Ask, row: int) -> bool:
    """Whether the node takes work and has the devices and the CPU; memory is looked at by the caller."""
    if not state.open[row] or state.cpu_free[row] < ask.cpu:
        return False
    found = 0
    for device in range(state.left.shape[1]):
        if found >= ask.gpus:
            break
        if roomy(state, ask, row, device):
            found += 1
    return found >= ask.gpus


@kernel
def tightest(state: State, ask: Ask, row: int) -> int:
    """The device with room that has the least left, the lowest on ties; -1 for asks that share no single device."""
    if ask.gpus != 1:
        return -1
    best, least = -1, MILLI + 1
    for device in range(state.left.shape[1]):
        if state.left[row, device] < least and roomy(state, ask, row, device):
            best, least = device, int(state.left[row, device])
    return best


@kernel
def fragment(mix: Mix, left: IntArray, model: IntArray, cpu: int) -> float:
    """The published F of one node, milligpu: left and model are (W,)."""
    free = 0
    for device in range(len(left)):
        free += left[device]
    stuck = free * mix.cpu_only_weight
    for group in range(len(mix.share)):
        share = mix.share[group]
        accepted, low, found = 0, 0, 0
        for device in range(len(left)):
            if mix.accepts[model[device], group]:
                accepted += left[device]
                if left[device] < share:
                    low += left[device]
                else:
                    found += 1
        runs = 0.0
        for at in range(mix.start[group], mix.start[group + 1]):
            if found >= mix.gpus[at] and cpu >= mix.cpu[at]:
                runs += mix.weight[at]
        whole = mix.group_weight[group]
        stuck += (free - accepted) * whole + accepted * (whole - runs) + low * runs
    return stuck


@kernel
def free_of(state: State, row: int) -> int:
    """Milligpu left on the node."""
    free = 0
    for device in range(state.left.shape[1]):
        free += state.left[row, device]
    return free


@kernel
def chance(seed: int, draw: int, row: int) -> int:
    """A number below 2**32 that looks random and depends on its arguments alone: equal compiled, plain and on arrays.

    The mixing steps are those of a common 32-bit integer hash; the products stay within what 64 bits wrap equally.
    """
    x = (seed * 0x1E3779B1 + draw * 0x05EBCA6B + row * 0x02B2AE35 + 0x27D4EB2F) & _MASK
    x = ((x ^ (x >> 16)) * 0x045D9F3B) & _MASK
    x = ((x ^ (x >> 16)) * 0x045D9F3B) & _MASK
    return x ^ (x >> 16)
