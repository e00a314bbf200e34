"""Slow, obvious twins of the gpuwatch policy: filling one node with arrivals, and which nodes are held back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.reference.fragmentation import Device, Task
from tests.reference.states import MODELS


def unused(cpu: int, devices: list[Device], sequences: list[list[Task]]) -> int:
    """What is left of the node, milligpu, summed over the sequences, each run on a fresh copy."""
    return sum(_left_after(cpu, devices, sequence) for sequence in sequences)


def _left_after(cpu: int, devices: list[Device], sequence: list[Task]) -> int:
    # Devices alike in what is left are taken in the order of models, so that their places make no difference.
    state = sorted(([d.left, _code(d.model), d.model] for d in devices), key=lambda each: each[:2])
    for task in sequence:
        roomy = [d for d in state if d[0] >= task.share and (not task.models or d[2] in task.models)]
        if task.cpu > cpu or len(roomy) < task.gpus:
            continue
        cpu -= task.cpu
        if task.gpus == 1:
            min(roomy, key=lambda each: each[0])[0] -= task.share
        elif task.gpus:
            for device in roomy[: task.gpus]:
                device[0] -= task.share
    return sum(d[0] for d in state)


def _code(model: str | None) -> int:
    return MODELS.index(model) if model in MODELS else -1


def look_ahead_score(cpu: int, devices: list[Device], task: Task, sequences: list[list[Task]]) -> tuple[int, int]:
    """(score, device) of a task that fits; device -1 where several or none are taken."""
    roomy = [at for at, d in enumerate(devices) if d.left >= task.share and (not task.models or d.model in task.models)]
    options = [(at, [at]) for at in roomy] if task.gpus == 1 else [(-1, roomy[: task.gpus])]
    before, best = unused(cpu, devices, sequences), None
    for at, taken in options:
        after = [Device(d.model, d.left - task.share * (i in taken)) for i, d in enumerate(devices)]
        score = before - unused(cpu - task.cpu, after, sequences)
        if best is None or score > best[0]:
            best = (score, at)
    assert best is not None
    return best


@dataclass(frozen=True)
class HeldNode:
    """A node of one model."""

    model: str | None
    left: tuple[int, ...]
    cpu_free: int
    cpu_capacity: int
    running: dict[int, int]  # whole devices of each -> members
    open: bool = True

    @property
    def kind(self) -> tuple[int, int, str | None]:
        return len(self.left), self.cpu_capacity, self.model

    @property
    def whole(self) -> bool:
        return all(left == 1000 for left in self.left) and self.cpu_free >= self.cpu_capacity * 15 / 16


def held_levels(nodes: list[HeldNode], task: Task, mix: list[tuple[Task, float]]) -> list[int]:
    """0 take, 1 and 2 last, 9 or more never, for each open node; closed ones are nobody's choice."""
    nodes = [node for node in nodes if node.open]
    free, capacity = sum(sum(n.left) for n in nodes), 1000 * sum(len(n.left) for n in nodes)
    level, reserved = {}, dict.fromkeys((*MODELS, None), 0.0)
    for kind in {n.kind for n in nodes}:
        size, of_kind = kind[0], [n for n in nodes if n.kind == kind]
        level[kind] = 0
        if size < 2 or task.gpus >= size:
            continue
        running = 1 + sum(n.running.get(size, 0) for n in nodes)
        expected = running * size * 1000 / (capacity - free + size * 1000) * len(of_kind) * free / capacity
        whole, alike = sum(n.whole for n in of_kind), [n for n in nodes if len(n.left) == size]
        kept = min(expected + 6 * math.sqrt(expected), len(of_kind))
        reserved[kind[2]] += kept * size * 1000
        if whole <= min(3 * math.sqrt(expected), len(of_kind) / 20):
            level[kind] = 9
        else:
            rare = whole * len(alike) < sum(n.whole for n in alike) * len(of_kind)
            level[kind] = int(rare or whole <= kept)
    scarce = {model for model in reserved if _scarce(nodes, task, mix, model, reserved[model], free)}
    return [(level[n.kind] if n.whole else 0) + (n.model in scarce) for n in nodes]


def _scarce(nodes, task: Task, mix, model: str | None, reserved: float, free: int) -> bool:
    room = {each: sum(sum(n.left) for n in nodes if n.model == each) for each in (*MODELS, None)}
    own = set(task.models or (*MODELS, None))
    demand = sum(weight * each.gpus * each.share for each, weight in mix)
    wanted = 0.0
    for each, weight in mix:
        accepted = set(each.models or (*MODELS, None))
        within = sum(room[one] for one in accepted)
        if accepted < own and model in accepted and within:
            wanted += weight * each.gpus * each.share * room[model] / within
    return task.gpus > 0 and room[model] <= reserved + (wanted * free / demand if demand else 0)
