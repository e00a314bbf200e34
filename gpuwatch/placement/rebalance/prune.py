"""Drops moves that the finished plan no longer needs: later steps made their gain another way."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.placement.rebalance.ground import Ground, Moved, Step


class Trial:
    """Plays steps on plain lists, which is quick for many short trials."""

    def __init__(self, ground: Ground) -> None:
        self._pieces, self._asks = ground.pieces, ground.queue.asks
        self._cpu = ground.states.cpu.tolist()
        self._memory = ground.states.memory.tolist()
        self._left = ground.states.left.tolist()

    def plays(self, steps: Sequence[Step]) -> bool:
        """Whether every step finds what it needs, in order; leaves the lists as they were."""
        played: list[Step] = []
        sound = True
        for step in steps:
            if not self._fits(step):
                sound = False
                break
            self._do(step, 1)
            played.append(step)
        for step in reversed(played):
            self._do(step, -1)
        return sound

    def _fits(self, step: Step) -> bool:
        ask = self._pieces[step.piece].ask if isinstance(step, Moved) else self._asks[step.which]
        left = self._left[step.row]
        stays = isinstance(step, Moved) and self._pieces[step.piece].row == step.row
        # A member that only changes its device takes its CPU and memory along.
        beside = stays or (self._cpu[step.row] >= ask.cpu and self._memory[step.row] >= ask.memory)
        return beside and all(left[device] >= ask.share for device in step.devices)

    def _do(self, step: Step, times: int) -> None:
        if isinstance(step, Moved):
            piece = self._pieces[step.piece]
            self._take(step.row, piece.ask.cpu, piece.ask.memory, piece.ask.share, step.devices, times)
            self._take(piece.row, piece.ask.cpu, piece.ask.memory, piece.ask.share, piece.gives, -times)
        else:
            ask = self._asks[step.which]
            self._take(step.row, ask.cpu, ask.memory, ask.share, step.devices, times)

    def _take(self, row: int, cpu: int, memory: int, share: int, devices: Sequence[int], times: int) -> None:
        self._cpu[row] -= times * cpu
        self._memory[row] -= times * memory
        left = self._left[row]
        for device in devices:
            left[device] -= times * share


def pruned(ground: Ground, steps: Sequence[Step], least_gain: int) -> list[Step]:
    """`steps` without the moves that are not needed. `ground` stands before the first step, and does so again after."""
    trial = Trial(ground)
    kept = list(steps)
    for step in reversed(steps):
        if not isinstance(step, Moved):
            continue
        without = [each for each in kept if each is not step]
        if trial.plays(without) and _usable(ground, kept) - _usable(ground, without) < least_gain:
            kept = without
    return kept


def _usable(ground: Ground, steps: Sequence[Step]) -> int:
    mark = ground.mark()
    replay(ground, steps)
    usable = int(ground.usable.sum())
    ground.restore(mark)
    return usable


def replay(ground: Ground, steps: Sequence[Step]) -> None:
    """Does `steps` on `ground`, unasked."""
    for step in steps:
        if isinstance(step, Moved):
            ground.move(step.piece, step.row, step.devices)
        else:
            ground.start((step.which, step.devices), step.row)
