"""A fast choice for large questions: the least harmful kind of device first, the fullest use first."""

from __future__ import annotations

from gpuwatch.placement.mig.classes import Choice, DeviceClass, Problem
from gpuwatch.placement.mig.options import Counts, Option


def greedy_choice(problem: Problem) -> Choice:
    """Takes, again and again, the option that meets most of what is left at the lowest harm."""
    left = [ask.count for ask in problem.asks]
    free = [len(group.devices) for group in problem.classes]
    chosen = Choice.none(problem)
    for harm in sorted({_harm(group) for group in problem.classes}):
        while (best := _best(problem, harm, left, free)) is not None:
            c, o = best
            given = served(problem, problem.classes[c], problem.classes[c].options[o].serves, left)
            # As many equal devices at once as give just as much.
            times = min([free[c], *(left[a] // amount for a, amount in enumerate(given) if amount)])
            chosen.counts[c][o] += times
            free[c] -= times
            for a, amount in enumerate(given):
                left[a] -= times * amount
                chosen.meets[a][c] += times * amount
    return chosen


def served(problem: Problem, group: DeviceClass, serves: Counts, left: list[int]) -> Counts:
    """How many instances each ask gets of one device, those first that have the fewest other places."""
    supply = dict(zip(problem.profiles, serves, strict=True))
    given = [0] * len(problem.asks)
    for a in sorted(range(len(problem.asks)), key=lambda a: (sum(g.takes[a] for g in problem.classes), a)):
        ask = problem.asks[a]
        if group.takes[a]:
            given[a] = min(left[a], supply[ask.profile])
            supply[ask.profile] -= given[a]
    return tuple(given)


def _best(problem: Problem, harm: tuple[int, int, int], left: list[int], free: list[int]) -> tuple[int, int] | None:
    """(class, option) that meets most; None when nothing at this harm meets anything."""
    found = max(
        (
            (_worth(problem, group, option, left), tuple(-cost for cost in option.cost()), -c, -o)
            for c, group in enumerate(problem.classes)
            if free[c] and _harm(group) == harm
            for o, option in enumerate(group.options)
        ),
        default=None,
    )
    return (-found[2], -found[3]) if found is not None and found[0][0] > 0 else None


def _harm(group: DeviceClass) -> tuple[int, int, int]:
    return group.drains, group.enables, group.loses


def _worth(problem: Problem, group: DeviceClass, option: Option, left: list[int]) -> tuple[int, int]:
    """Compute slices met, then fewest instances that nobody asks for."""
    given = served(problem, group, option.serves, left)
    return sum(problem.worth(ask) * n for ask, n in zip(problem.asks, given, strict=True)), sum(given) - sum(
        option.serves
    )
