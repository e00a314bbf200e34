"""From a demand of profiles and the devices at hand to one plan, with what it costs and what it cannot meet."""

from __future__ import annotations

from collections import Counter

from gpuwatch.model.mig import AskAnswer, MigAsk, MigPlan
from gpuwatch.placement.mig.bundles import merge, place_bundles
from gpuwatch.placement.mig.classes import Choice, Problem, problem_of, weights_of
from gpuwatch.placement.mig.devices import Device
from gpuwatch.placement.mig.exact import THOROUGH, best_choice, bounds, rounded
from gpuwatch.placement.mig.greedy import greedy_choice
from gpuwatch.placement.mig.program import Effort
from gpuwatch.placement.mig.unmet import why_unmet
from gpuwatch.placement.mig.uses import Use, uses_of

EXACT, GREEDY = "exact", "greedy"


def plan_layouts(
    asks: tuple[MigAsk, ...],
    devices: list[Device],
    left_out: dict[str, int] | None = None,
    *,
    effort: Effort | None = THOROUGH,
) -> MigPlan:
    """The plan for `asks` on `devices`: the best one where `effort` proves it, else a greedy one with bounds.

    Asks of several instances on one node are placed first, one after the other; a plan with such asks is a greedy one.
    Held instances are never touched. Without effort the greedy plan is made.
    """
    ordered = _scraps_first(devices)
    bundles = tuple(ask for ask in asks if ask.together > 1)
    first, left = place_bundles(bundles, ordered)
    problem = problem_of(tuple(ask for ask in asks if ask.together == 1), left)
    choice = best_choice(problem, effort) if effort else None
    method = GREEDY if choice is None or bundles else EXACT
    uses = [*first, *uses_of(problem, choice or _fast_choice(problem))]
    layouts = merge(use.layout() for use in uses)
    answers = tuple(_answer(ask, uses, devices, left_out or {}) for ask in asks)
    met = _met(answers, devices)
    lost = sum(layout.was_free for layout in layouts)
    most, fewest = (met, lost) if method == EXACT else bounds(problem_of(asks, ordered), met)
    return MigPlan(
        answers=answers,
        devices=tuple(layouts),
        method=method,
        considered=len(devices),
        left_out=left_out or {},
        free_gpus_before=sum(device.free for device in devices),
        free_gpus_lost=lost,
        repartitioned=sum(bool(each.create or each.delete) for each in layouts),
        unmet=sum(answer.unmet for answer in answers),
        met_slices=met,
        most_met_slices=most,
        fewest_free_gpus_lost=fewest,
    )


def _fast_choice(problem: Problem) -> Choice:
    """The better of two greedy choices: from nothing, and from the rounded program."""
    plain, begun = greedy_choice(problem), greedy_choice(problem, rounded(problem))
    return min(begun, plain, key=lambda choice: (-choice.met(problem), choice.cost(problem)))


def _scraps_first(devices: list[Device]) -> list[Device]:
    """Of equal devices those are cut first whose node has fewest free ones: a wholly free node stays whole."""
    free = Counter(device.node for device in devices if device.free)
    return sorted(devices, key=lambda device: free[device.node])  # stable


def _answer(ask: MigAsk, uses: list[Use], devices: list[Device], left_out: dict[str, int]) -> AskAnswer:
    ready = sum(use.ready.get(ask, 0) for use in uses)
    created = sum(use.made.get(ask, 0) for use in uses)
    unmet = ask.count - ready - created
    reason, blocked = why_unmet(ask, devices, left_out) if unmet else (None, ())
    return AskAnswer(ask=ask, ready=ready, created=created, unmet=unmet, reason=reason, blocked_by=blocked)


def _met(answers: tuple[AskAnswer, ...], devices: list[Device]) -> int:
    worth = weights_of(tuple(each.ask.profile for each in answers), devices)
    return sum(slices * (each.ready + each.created) for slices, each in zip(worth, answers, strict=True))
