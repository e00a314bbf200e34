"""The best end state of a small cluster by integer programming, and an order in which it can be reached.

The program chooses a place for every piece and every waiting job at once. Its objective is that of the search: waiting
jobs started, twice, and capacity usable for the mix, less the least gain for every move. It knows no order, so what it
finds is a bound; it becomes a plan where its moves can be put in an order with every target free in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.placement.rebalance.ground import Ground, Moved, Started, Step
from gpuwatch.placement.rebalance.prune import Trial

MOST_NODES, MOST_PIECES, MOST_VARIABLES = 6, 30, 2500
_SECONDS = 60.0  # never reached on a common machine: the number of branches bounds the work, so that answers repeat


@dataclass(frozen=True, slots=True)
class Exact:
    """value: of the best end state, moves charged; None with a `reason`. steps: None when no order reaches it."""

    value: float | None = None
    steps: list[Step] | None = None
    reason: str | None = None


def exact_steps(ground: Ground, least_gain: int) -> Exact:
    """Solves it where it is small. `ground` stands before the first step, and is left as it is."""
    nodes, pieces = len(ground.states), len(ground.pieces)
    if nodes > MOST_NODES or pieces > MOST_PIECES:
        return Exact(
            reason=f"too_large: {nodes} nodes and {pieces} movable jobs; exact up to {MOST_NODES} and {MOST_PIECES}"
        )
    if not pieces and not any(ground.queue.supply):
        return Exact(reason="nothing_to_decide")
    try:
        from gpuwatch.placement.rebalance.program import solve
    except ModuleNotFoundError:
        return Exact(reason="scipy_missing")
    solved = solve(ground, least_gain, MOST_VARIABLES, _SECONDS)
    if isinstance(solved, str):
        return Exact(reason=solved)
    return Exact(value=solved.value, steps=in_order(ground, solved.steps))


def in_order(ground: Ground, steps: Sequence[Step]) -> list[Step] | None:
    """`steps` so that each finds its target free; every start as early as it can be. None when moves wait in a ring."""
    trial = Trial(ground)
    moves = [step for step in steps if isinstance(step, Moved)]
    order: list[Step] = []
    while moves:
        ready = next((step for step in moves if trial.plays([*order, step])), None)
        if ready is None:
            return None
        order.append(ready)
        moves.remove(ready)
    for start in steps:
        if isinstance(start, Started):
            ways = ([*order[:at], start, *order[at:]] for at in range(len(order) + 1))
            found = next((way for way in ways if trial.plays(way)), None)
            if found is None:
                return None
            order = found
    return order
