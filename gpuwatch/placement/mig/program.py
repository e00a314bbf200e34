"""The integer program behind a MIG plan: which class of devices becomes what, and which ask is met where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuwatch.fit.columns import FloatArray
from gpuwatch.placement.mig.classes import Choice, DeviceClass, Problem
from gpuwatch.placement.mig.options import Option

Cost = Callable[[DeviceClass, Option], int]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work one aim is worth before the greedy choice answers instead."""

    columns: int  # larger programs are not tried
    nodes: int  # of the search tree
    seconds: float | None  # None: no clock, so that equal questions have equal answers on every machine


@dataclass(slots=True)
class Program:
    """The linear program. Columns: one for each (class, option), then one for each (ask, class) that may meet."""

    problem: Problem
    options: list[tuple[int, int]] = field(init=False)
    flows: list[tuple[int, int]] = field(init=False)
    rows: list[tuple[dict[int, float], float, float]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        classes = self.problem.classes
        self.options = [(c, o) for c, group in enumerate(classes) for o in range(len(group.options))]
        self.flows = [
            (a, c)
            for a in range(len(self.problem.asks))
            for c, group in enumerate(classes)
            if group.takes[a] and group.options
        ]
        self._devices_are_used_once()
        self._instances_are_served_once()

    @property
    def size(self) -> int:
        """Columns."""
        return len(self.options) + len(self.flows)

    def met(self) -> FloatArray:
        """What serving counts: compute slices before instances."""
        total = sum(ask.count for ask in self.problem.asks) + 1
        out = np.zeros(self.size)
        for at, (ask, _) in enumerate(self.flows, start=len(self.options)):
            out[at] = self.problem.worth(self.problem.asks[ask]) * total + 1
        return out

    def aim(self, cost: Cost) -> FloatArray:
        """One aim's cost of each column."""
        out = np.zeros(self.size)
        for at, (c, o) in enumerate(self.options):
            group = self.problem.classes[c]
            out[at] = cost(group, group.options[o])
        return out

    def fix(self, row: FloatArray, low: float, high: float) -> None:
        """Adds low <= row x columns <= high."""
        self.rows.append(({int(at): float(row[at]) for at in np.flatnonzero(row)}, low, high))

    def solve(self, objective: FloatArray, effort: Effort | None = None) -> Any:
        """scipy's answer to minimizing `objective` in whole numbers; without `effort`, in broken ones."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
        from scipy.sparse import csr_array  # type: ignore[import-untyped]

        entries = [(r, c, v) for r, (row, _, _) in enumerate(self.rows) for c, v in row.items()]
        at_row, at_column, values = zip(*entries, strict=True)
        matrix = csr_array((values, (at_row, at_column)), shape=(len(self.rows), self.size))
        limits = LinearConstraint(matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows])
        return milp(
            objective,
            constraints=limits,
            integrality=np.zeros(self.size) if effort is None else np.ones(self.size),
            bounds=Bounds(0, np.inf),
            options=_options(effort),
        )

    def choice(self, columns: FloatArray) -> Choice:
        """The columns as numbers of devices and of instances."""
        chosen = Choice.none(self.problem)
        for at, (c, o) in enumerate(self.options):
            chosen.counts[c][o] = round(float(columns[at]))
        for at, (a, c) in enumerate(self.flows, start=len(self.options)):
            chosen.meets[a][c] = round(float(columns[at]))
        return chosen

    def _devices_are_used_once(self) -> None:
        column = {pair: at for at, pair in enumerate(self.options)}
        for c, group in enumerate(self.problem.classes):
            if group.options:
                row = {column[c, o]: 1.0 for o in range(len(group.options))}
                self.rows.append((row, -np.inf, float(len(group.devices))))

    def _instances_are_served_once(self) -> None:
        column = {pair: at for at, pair in enumerate(self.options)}
        flow = {pair: at for at, pair in enumerate(self.flows, start=len(self.options))}
        for a, ask in enumerate(self.problem.asks):
            served = {flow[pair]: 1.0 for pair in self.flows if pair[0] == a}
            if served:
                self.rows.append((served, -np.inf, float(ask.count)))
        for c, group in enumerate(self.problem.classes):
            for p, profile in enumerate(self.problem.profiles):
                row = {
                    flow[a, c]: 1.0
                    for a, ask in enumerate(self.problem.asks)
                    if (a, c) in flow and ask.profile == profile
                }
                if row:
                    row |= {
                        column[c, o]: -float(each.serves[p]) for o, each in enumerate(group.options) if each.serves[p]
                    }
                    self.rows.append((row, -np.inf, 0.0))


def _options(effort: Effort | None) -> dict[str, float]:
    if effort is None:
        return {}
    clock = {} if effort.seconds is None else {"time_limit": effort.seconds}
    return {"mip_rel_gap": 0.0, "node_limit": effort.nodes, **clock}
