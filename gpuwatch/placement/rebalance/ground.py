"""The cluster while a plan is made on it: what is free, who may still move, and the steps taken so far."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpuwatch.fit.columns import Columns, FloatArray, IntArray
from gpuwatch.fragmentation.kernel import MixTable, fragment_of_nodes
from gpuwatch.placement.rebalance.asks import Access, Ask, States
from gpuwatch.placement.rebalance.fill import Queue, Start

# A GPU given to a job that waits counts twice one that only becomes usable for jobs that may come.
WAITING_WEIGHT = 2
_CHEAP = 0.25  # GPU-hours


@dataclass(frozen=True, slots=True)
class Piece:
    """A running job of one member that may be moved. `devices` are columns; the usable ones give their share back."""

    job: str
    ask: Ask  # held to the cards that it may run on
    row: int
    devices: tuple[int, ...]
    gives: tuple[int, ...]
    owner: str
    owner_most: int  # moves that its owner bears
    tenant: str
    price: float  # GPU-hours of work that one move loses
    never_rows: frozenset[int] = frozenset()  # nodes it must not go (back) to

    @property
    def cost_class(self) -> int:
        """Coarse, so that a price a little off ranks the same: below a quarter of a GPU-hour 0, then powers of four."""
        return 0 if self.price < _CHEAP else 1 + int(math.log(self.price / _CHEAP, 4))


@dataclass(frozen=True, slots=True)
class Moved:
    """A step: `piece` goes to `devices` of `row`."""

    piece: int
    row: int
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """A step: one waiting job of the queue's ask `which` starts on `devices` of `row`."""

    which: int
    row: int
    devices: tuple[int, ...]


Step = Moved | Started


@dataclass(frozen=True, slots=True)
class Budget:
    """What a plan may cost."""

    moves: int
    gpu_hours: float
    per_tenant: int | None = None


@dataclass(slots=True)
class Mark:
    """A point to go back to."""

    states: States
    steps: list[Step]
    supply: list[int]
    moved: set[int]
    owners: Counter[str]
    tenants: Counter[str]
    gpu_hours: float
    started: int
    usable: IntArray


@dataclass(slots=True)
class Ground:
    """Changed by move(), start() and unstart() alone; `usable` (N,) follows by refresh()."""

    columns: Columns
    access: Access
    pieces: list[Piece]
    queue: Queue
    mix: MixTable
    budget: Budget
    states: States
    steps: list[Step] = field(default_factory=list)
    moved: set[int] = field(default_factory=set)
    owners: Counter[str] = field(default_factory=Counter)
    tenants: Counter[str] = field(default_factory=Counter)
    gpu_hours: float = 0.0
    started: int = 0  # milligpu of waiting jobs that start
    usable: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    here: list[list[int]] = field(default_factory=list)  # pieces by the row they were on at first
    kinds: list[Ask] = field(default_factory=list)  # distinct asks of the pieces
    kind_of: list[int] = field(default_factory=list)  # position in `kinds`, by piece

    def __post_init__(self) -> None:
        known: dict[Ask, int] = {}
        self.kind_of = [known.setdefault(piece.ask, len(known)) for piece in self.pieces]
        self.kinds = list(known)
        self.usable = self.usable_in(self.states)
        self.here = [[] for _ in range(len(self.states))]
        for at, piece in enumerate(self.pieces):
            self.here[piece.row].append(at)

    def usable_in(self, states: States) -> IntArray:
        """(R,) free milligpu less what the mix cannot take of it, rounded."""
        free: FloatArray = states.left.sum(axis=1).astype(np.float64)
        weight = float(self.mix.weight.sum())
        if not weight:
            return np.zeros(len(states), dtype=np.int64)
        cpu = states.cpu.clip(min=0)
        published = fragment_of_nodes(self.mix, states.left, self.columns.model[states.row], cpu)
        stranded = (published - free * self.mix.cpu_only_weight) / weight
        return np.rint(free - stranded).astype(np.int64)

    def state(self, row: int) -> States:
        """The one state of `row`, a copy."""
        at = np.array([row])
        return States(at, self.states.cpu[at], self.states.memory[at], self.states.left[at])

    def value(self) -> int:
        """What the plan is after, so far: waiting jobs started, and capacity usable for the mix."""
        return WAITING_WEIGHT * self.started + int(self.usable.sum())

    def holds(self, step: Started) -> bool:
        """Whether this very start is still in the plan."""
        return any(step is each for each in self.steps)

    def may_move(self, at: int) -> bool:
        """Whether the piece has not moved yet and the budgets bear its move."""
        piece = self.pieces[at]
        return (
            at not in self.moved
            and len(self.moved) < self.budget.moves
            and self.gpu_hours + piece.price <= self.budget.gpu_hours
            and self.owners[piece.owner] < piece.owner_most
            and (self.budget.per_tenant is None or self.tenants[piece.tenant] < self.budget.per_tenant)
        )

    def move(self, at: int, row: int, devices: tuple[int, ...]) -> None:
        """The piece takes its new place, then gives back the old one."""
        piece = self.pieces[at]
        self._take(piece.ask, row, devices, 1)
        self._take(piece.ask, piece.row, piece.gives, -1)
        self.moved.add(at)
        self.owners[piece.owner] += 1
        self.tenants[piece.tenant] += 1
        self.gpu_hours += piece.price
        self.steps.append(Moved(at, row, devices))
        self.refresh(piece.row, row)

    def start(self, start: Start, row: int) -> None:
        """One waiting job of the queue starts."""
        which, devices = start
        self._take(self.queue.asks[which], row, devices, 1)
        self.queue.supply[which] -= 1
        self.steps.append(Started(which, row, devices))
        self.started += self.queue.asks[which].milligpu
        self.refresh(row)

    def unstart(self, step: Started) -> None:
        """Takes a start out of the plan: what follows had less room with it than without."""
        self._take(self.queue.asks[step.which], step.row, step.devices, -1)
        self.queue.supply[step.which] += 1
        self.steps = [each for each in self.steps if each is not step]
        self.started -= self.queue.asks[step.which].milligpu
        self.refresh(step.row)

    def refill(self, row: int) -> None:
        """Starts what waits and fits on `row` now."""
        for start in self.queue.starts(self.state(row)):
            self.start(start, row)

    def refresh(self, *rows: int) -> None:
        """Brings `usable` up to date where something changed."""
        at = np.array(sorted(set(rows)))
        changed = States(at, self.states.cpu[at], self.states.memory[at], self.states.left[at])
        self.usable[at] = self.usable_in(changed)

    def mark(self) -> Mark:
        """Remembers everything that restore() brings back."""
        return Mark(
            states=self.states.copy(),
            steps=list(self.steps),
            supply=list(self.queue.supply),
            moved=set(self.moved),
            owners=self.owners.copy(),
            tenants=self.tenants.copy(),
            gpu_hours=self.gpu_hours,
            started=self.started,
            usable=self.usable.copy(),
        )

    def restore(self, mark: Mark) -> None:
        """Goes back to `mark`, which is used up by it."""
        self.states, self.steps, self.moved = mark.states, mark.steps, mark.moved
        self.queue.supply[:] = mark.supply
        self.owners, self.tenants = mark.owners, mark.tenants
        self.gpu_hours, self.started, self.usable = mark.gpu_hours, mark.started, mark.usable

    def _take(self, ask: Ask, row: int, devices: tuple[int, ...], times: int) -> None:
        self.states.cpu[row] -= times * ask.cpu
        self.states.memory[row] -= times * ask.memory
        for device in devices:
            self.states.left[row, device] -= times * ask.share
