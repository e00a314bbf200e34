"""The best choice by integer programming (HiGHS through scipy), one aim after the other.

Aims in order: meet most of the demand (in compute slices, then in instances); drain the fewest busy devices; switch
the fewest to MIG mode; lose the fewest wholly free ones, and of these the lowest cards; change the fewest; delete the
fewest instances; leave the most room for large profiles. Each aim is fixed before the next is looked at.
"""

from __future__ import annotations

import numpy as np

from gpuwatch.placement.mig.classes import Choice, Problem
from gpuwatch.placement.mig.program import Cost, Effort, Program

THOROUGH = Effort(columns=30_000, nodes=1_000_000, seconds=20.0)
QUICK = Effort(columns=3_000, nodes=1_000, seconds=None)
_WHOLE = 0.5  # aims are whole numbers: this much slack keeps a reached one reached

_MOST_BROKEN_COLUMNS = 200_000  # of a program with broken numbers, which is solved in seconds
_SLACK = 1e-6
_WEIGHTS = (1e4, 1e3, 1e2, 5.0, 1.0, 1e-1, 1e-3)  # of the aims below, where one program has to do for all

AIMS: tuple[tuple[str, Cost], ...] = (
    ("drained", lambda group, option: group.drains),
    ("enabled", lambda group, option: group.enables),
    ("lost", lambda group, option: group.loses),
    ("tier", lambda group, option: group.devices[0].tier_lost),
    ("changed", lambda group, option: int(option.changed)),
    ("deleted", lambda group, option: len(option.delete)),
    ("later", lambda group, option: group.before - option.later),
)


def best_choice(problem: Problem, effort: Effort = THOROUGH) -> Choice | None:
    """The proven best choice; None when it takes more than `effort`, or scipy is not installed."""
    program = Program(problem)
    if not program.options or not program.flows:
        return Choice.none(problem)
    if program.size > effort.columns:
        return None
    met = program.met()
    try:
        found = program.solve(-met, effort)
    except ImportError:
        return None
    if found.status != 0:
        return None
    program.fix(met, float(round(-found.fun)) - _WHOLE, np.inf)
    for _, cost in AIMS:
        row = program.aim(cost)
        if not row.any():
            continue
        better = program.solve(row, effort)
        if better.status != 0:
            return None
        found = better
        program.fix(row, -np.inf, float(round(found.fun)) + _WHOLE)
    return program.choice(found.x)


def rounded(problem: Problem) -> list[tuple[int, int, int]]:
    """(class, option, devices) of the best choice with broken numbers, rounded down: a good start for the greedy one.

    Empty without scipy, or where that program is too large or has no answer.
    """
    program = Program(problem)
    if not program.options or not program.flows or program.size > _MOST_BROKEN_COLUMNS:
        return []
    met = program.met()
    try:
        most = program.solve(-met)
    except ImportError:
        return []
    if most.status != 0:
        return []
    program.fix(met, -most.fun * (1 - _SLACK), np.inf)
    weighed = sum((weight * program.aim(cost) for (_, cost), weight in zip(AIMS, _WEIGHTS, strict=True)), 0 * met)
    found = program.solve(weighed)
    if found.status != 0:
        return []
    counts = np.floor(found.x[: len(program.options)] + _SLACK).astype(np.int64)
    return [(*program.options[at], int(counts[at])) for at in np.flatnonzero(counts)]


def bounds(problem: Problem, met_at_least: int) -> tuple[int | None, int | None]:
    """What no choice can beat: most compute slices met, and fewest wholly free devices lost by one that meets
    `met_at_least`. From the program with broken numbers; (None, None) without scipy or where that fails."""
    program = Program(problem)
    if not program.options or not program.flows:
        return 0, 0
    worth = np.zeros(program.size)
    for at, (ask, _) in enumerate(program.flows, start=len(program.options)):
        worth[at] = problem.worth(problem.asks[ask])
    try:
        most = program.solve(-worth)
    except ImportError:
        return None, None
    if most.status != 0:
        return None, None
    program.fix(worth, met_at_least - _WHOLE / 1000, np.inf)
    fewest = program.solve(program.aim(lambda group, option: group.loses))
    lost = int(np.ceil(fewest.fun - 1e-6)) if fewest.status == 0 else None
    return int(np.floor(-most.fun + 1e-6)), lost
