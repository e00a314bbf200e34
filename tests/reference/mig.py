"""MIG geometry the slow way: every set of placed instances is tried against the rules, one pair at a time.

Written from the placement table alone, without the product's own data or code.
"""

from __future__ import annotations

from itertools import combinations

# kind -> (compute slices, memory slices, first memory slices)
EIGHTHS = {
    "1g": (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g_double": (1, 2, (0, 2, 4, 6)),
    "2g": (2, 2, (0, 2, 4)),
    "3g": (3, 4, (0, 4)),
    "4g": (4, 4, (0,)),
    "7g": (7, 8, (0,)),
}
COMPUTE_SLICES = 7

Placed = tuple[str, int]  # kind, first memory slice


def legal(state: frozenset[Placed], table: dict[str, tuple[int, int, tuple[int, ...]]] = EIGHTHS) -> bool:
    """Whether these instances may stand on one device together."""
    if sum(table[kind][0] for kind, _ in state) > COMPUTE_SLICES:
        return False
    if any(start not in table[kind][2] for kind, start in state):
        return False
    for (kind, start), (other, beside) in combinations(sorted(state), 2):
        mine = set(range(start, start + table[kind][1]))
        if mine & set(range(beside, beside + table[other][1])):
            return False
    return True


def states(kinds: tuple[str, ...]) -> set[frozenset[Placed]]:
    """Every legal set of placed instances of these kinds, the empty one included."""
    every = [(kind, start) for kind in kinds for start in EIGHTHS[kind][2]]
    return {
        frozenset(some)
        for count in range(COMPUTE_SLICES + 1)
        for some in combinations(every, count)
        if legal(frozenset(some))
    }


def maximal(kinds: tuple[str, ...]) -> set[frozenset[Placed]]:
    """The legal states to which nothing can be added."""
    every = [(kind, start) for kind in kinds for start in EIGHTHS[kind][2]]
    return {
        state for state in states(kinds) if not any(legal(state | {placed}) for placed in every if placed not in state)
    }


def multisets(some: set[frozenset[Placed]]) -> set[tuple[str, ...]]:
    """The states without their starts."""
    return {tuple(sorted(kind for kind, _ in state)) for state in some}
