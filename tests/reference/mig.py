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


def outcomes(
    held: tuple[Placed, ...], idle: tuple[Placed, ...], free: bool, asked: dict[str, int], kinds: tuple[str, ...]
) -> set[tuple[tuple[int, ...], tuple[int, int, int, int]]]:
    """All that one device can become: (instances that serve, per kind asked; (lost, changed, deleted, room lost)).

    Every set of idle instances may go, every legal set of new ones may come beside the rest. Room is the size of
    the largest kind that fits beside everything; what is lost of it may be less than nothing.
    """
    out = set()
    before = _room(frozenset(held) | frozenset(idle), kinds)
    for count in range(len(idle) + 1):
        for gone in combinations(idle, count):
            stay = frozenset(held) | (frozenset(idle) - frozenset(gone))
            for state in states_cached(kinds):
                if not stay <= state:
                    continue
                new = state - stay
                if any(kind not in asked for kind, _ in new) or (gone and not new):
                    continue
                serving = new | (frozenset(idle) - frozenset(gone))
                serves = tuple(min(sum(kind == k for k, _ in serving), n) for kind, n in asked.items())
                changed = int(bool(new or gone))
                if any(serves):
                    out.add((serves, (int(free), changed, len(gone), before - _room(state, kinds))))
    return out


def _room(state: frozenset[Placed], kinds: tuple[str, ...]) -> int:
    return max((16 * EIGHTHS[k][1] + EIGHTHS[k][0] for k in kinds if _fits(state, k)), default=0)


def _fits(state: frozenset[Placed], kind: str) -> bool:
    return any((kind, start) not in state and legal(state | {(kind, start)}) for start in EIGHTHS[kind][2])


_STATES: dict[tuple[str, ...], set[frozenset[Placed]]] = {}


def states_cached(kinds: tuple[str, ...]) -> set[frozenset[Placed]]:
    """states(), remembered."""
    if kinds not in _STATES:
        _STATES[kinds] = states(kinds)
    return _STATES[kinds]


def best(
    devices: list[tuple[tuple[Placed, ...], tuple[Placed, ...]]], asked: dict[str, int], kinds: tuple[str, ...]
) -> tuple[int, ...]:
    """(-compute slices met, -instances met, free devices lost, changed, deleted, room lost): the smallest.

    In that order, over every combination of what the devices can become. A device is (held, idle); nothing held means
    wholly free.
    """
    reached: set[tuple[tuple[int, ...], tuple[int, ...]]] = {((0,) * len(asked), (0, 0, 0, 0))}
    for held, idle in devices:
        more = outcomes(held, idle, not held, asked, kinds)
        reached |= {
            (
                tuple(min(a + b, n) for a, b, n in zip(sum_, serves, asked.values(), strict=True)),
                tuple(a + b for a, b in zip(costs, cost, strict=True)),
            )
            for sum_, costs in reached
            for serves, cost in more
        }
    worth = [EIGHTHS[kind][0] for kind in asked]
    return min((-sum(w * n for w, n in zip(worth, sum_, strict=True)), -sum(sum_), *costs) for sum_, costs in reached)
