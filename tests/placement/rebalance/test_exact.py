"""The integer program against trying everything, and against the search."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from gpuwatch.fit.booking import book
from gpuwatch.model.plan import PlanLimits
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance import exact
from gpuwatch.placement.rebalance.exact import exact_steps, in_order
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground, Moved
from gpuwatch.placement.rebalance.planner import plan_rebalance
from gpuwatch.placement.rebalance.program import solve
from gpuwatch.placement.rebalance.survey import survey
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.rebalance.clusters import crowded, mix_of
from tests.reference.rebalance import broken_by

pytest.importorskip("scipy")
LEAST = 100


def ground_of(snapshot: ClusterSnapshot, **limits) -> Ground:
    limits.setdefault("max_moves", 2)
    limits.setdefault("max_per_owner", 9)
    return survey(snapshot, book(snapshot), mix_of(snapshot), PlanLimits(**limits), {}, {}).ground


def best_by_trying(ground: Ground) -> int:
    """Every end state of at most two moves, whatever the order, then every way to start what waits."""
    best = 0
    places = {
        at: [
            (row, devices)
            for row in range(len(ground.states))
            for devices in combinations(range(ground.states.left.shape[1]), piece.ask.gpus)
            if all(ground.access.devices(piece.ask)[row, device] for device in devices)
        ]
        for at, piece in enumerate(ground.pieces)
    }
    for count in range(ground.budget.moves + 1):
        for moving in combinations(range(len(ground.pieces)), count):
            for spots in product(*(places[at] for at in moving)):
                mark = ground.mark()
                before = ground.value()
                for at, (row, devices) in zip(moving, spots, strict=True):
                    ground.move(at, row, devices)
                if sound(ground):
                    best = max(best, best_starts(ground) - before - LEAST * count)
                ground.restore(mark)
    return best


def sound(ground: Ground) -> bool:
    states = ground.states
    return bool((states.left >= 0).all() and (states.cpu >= 0).all() and (states.memory >= 0).all())


def best_starts(ground: Ground) -> int:
    best = ground.value()
    for which, ask in enumerate(ground.queue.asks):
        if not ground.queue.supply[which]:
            continue
        for row in range(len(ground.states)):
            for devices in combinations(range(ground.states.left.shape[1]), ask.gpus):
                if all(ground.access.devices(ask)[row, device] for device in devices):
                    mark = ground.mark()
                    ground.start((which, devices), row)
                    if sound(ground):
                        best = max(best, best_starts(ground))
                    ground.restore(mark)
    return best


def tiny(seed: int) -> ClusterSnapshot:
    return crowded(seed, nodes=2, jobs=9)


# Few pieces and few that wait, so that everything can be tried, and all with something to gain.
@pytest.mark.parametrize("seed", [9, 10, 31, 33, 39, 41, 55, 56, 60, 65])
def test_it_finds_what_trying_everything_finds(seed: int) -> None:
    ground = ground_of(tiny(seed))
    solved = solve(ground, LEAST, 10_000, 60.0)
    assert not isinstance(solved, str)
    assert solved.value > 0
    assert solved.value == pytest.approx(best_by_trying(ground), abs=3)  # rounding, a node each, and the solver's gap


def test_a_plan_is_the_optimum_where_it_can_be_reached() -> None:
    """Here the search alone finds less."""
    snapshot = crowded(36, nodes=3, jobs=16)
    limits = PlanLimits(max_moves=5, include_cpu_jobs=True)
    plan = plan_rebalance(snapshot, mix_of(snapshot), limits)
    assert (plan.method, plan.optimality_gap_ratio, plan.optimality_reason) == ("exact", 0.0, None)
    assert broken_by(plan, snapshot) == []


def test_large_clusters_say_that_they_were_not_solved() -> None:
    snapshot = a_snapshot(*(a_node(f"n{at}", 2) for at in range(exact.MOST_NODES + 1)), jobs=[a_job("a", "n1", [0])])
    plan = plan_rebalance(snapshot, mix_of(snapshot), PlanLimits())
    assert plan.optimality_gap_ratio is None
    assert plan.optimality_reason
    assert plan.optimality_reason.startswith("too_large")


def test_two_that_want_each_others_place_need_a_third() -> None:
    """A ring of moves without a free place is no plan."""
    jobs = [a_job("a", "n1", [0], shape=a_shape(1, cpu=1000)), a_job("b", "n2", [0], shape=a_shape(1, cpu=2000))]
    ring = ground_of(a_snapshot(a_node("n1", 1), a_node("n2", 1), jobs=jobs))
    assert in_order(ring, [Moved(0, 1, (0,)), Moved(1, 0, (0,))]) is None
    chain = ground_of(a_snapshot(a_node("n1", 1), a_node("n2", 1), a_node("n3", 1), jobs=jobs))
    assert in_order(chain, [Moved(0, 1, (0,)), Moved(1, 2, (0,))]) == [Moved(1, 2, (0,)), Moved(0, 1, (0,))]


def test_without_scipy_the_search_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "gpuwatch.placement.rebalance.program", None)
    answer = exact_steps(ground_of(tiny(1)), LEAST)
    assert (answer.value, answer.reason) == (None, "scipy_missing")


def test_the_weight_of_waiting_jobs_is_that_of_the_search() -> None:
    waits = a_job("w", shape=a_shape(1, cpu=0))
    solved = solve(ground_of(a_snapshot(a_node("n1", 1), jobs=[waits])), LEAST, 1000, 10.0)
    assert not isinstance(solved, str)
    assert solved.value == pytest.approx(WAITING_WEIGHT * 1000 - 1000)  # the mix could have used the device
