"""The same cluster seen a little differently gives the same plan; nobody is sent to and fro."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.engine import rebalance
from gpuwatch.model.jobs import ShapeCount
from gpuwatch.model.plan import MoveCost, PlanLimits, RebalancePlan
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance import exact
from gpuwatch.placement.rebalance.apply import apply_steps
from gpuwatch.placement.rebalance.planner import plan_rebalance
from tests.builders import a_job, a_node, a_shape, a_snapshot, readings
from tests.placement.rebalance.clusters import crowded, mix_of

LIMITS = PlanLimits(max_moves=6, include_cpu_jobs=True)


@pytest.fixture(autouse=True)
def _search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_NODES", 0)


def timed(seed: int) -> ClusterSnapshot:
    """Jobs have ages, and what was asked for lately is counted apart."""
    snapshot, rng = crowded(seed), random.Random(seed)
    now = snapshot.taken_at
    jobs = tuple(
        replace(
            job, started_at=now - timedelta(hours=50), last_checkpoint_at=now - timedelta(minutes=rng.randint(5, 90))
        )
        for job in snapshot.jobs
    )
    counts = tuple(ShapeCount(shape=share.shape, count=rng.randint(40, 400)) for share in mix_of(snapshot).shapes)
    return replace(snapshot, jobs=jobs, arrivals=counts)


def noisy(snapshot: ClusterSnapshot, seed: int) -> ClusterSnapshot:
    """Ages, counts and telemetry up to 5% off."""
    rng = random.Random(seed)
    now = snapshot.taken_at

    def off() -> float:
        return rng.uniform(0.95, 1.05)

    jobs = tuple(
        replace(
            job,
            last_checkpoint_at=now - off() * (now - job.last_checkpoint_at),
            started_at=now - off() * (now - job.started_at),
        )
        for job in snapshot.jobs
    )
    nodes = tuple(
        replace(node, gpus=tuple(replace(gpu, telemetry=readings(min(1.0, 0.9 * off()))) for gpu in node.gpus))
        for node in snapshot.nodes
    )
    counts = tuple(replace(each, count=round(each.count * off())) for each in snapshot.arrivals)
    return replace(snapshot, jobs=jobs, nodes=nodes, arrivals=counts)


def planned(snapshot: ClusterSnapshot, previous: RebalancePlan | None = None) -> RebalancePlan:
    return rebalance(snapshot, LIMITS, AnalysisSettings(), "id", previous=previous)


def places(plan: RebalancePlan) -> list[tuple[str, str | None, tuple[int, ...], str, tuple[int, ...]]]:
    return [(step.job, step.source, step.source_gpus, step.target, step.target_gpus) for step in plan.steps]


@settings(max_examples=25)
@given(seed=st.integers(0, 500), noise=st.integers(0, 500))
def test_with_the_previous_plan_noise_changes_nothing(seed: int, noise: int) -> None:
    snapshot = timed(seed)
    first = planned(snapshot)
    again = planned(noisy(snapshot, noise), first)
    if first.steps:
        assert places(again) == places(first)
        assert again.method == "previous"


def test_without_it_noise_seldom_does() -> None:
    """Two plans of nearly equal worth may change places; most do not."""
    same = total = 0
    for seed in range(30):
        first = planned(timed(seed))
        if first.steps:
            total += 1
            same += places(planned(noisy(timed(seed), seed))) == places(first)
    assert total >= 15
    assert same >= 0.8 * total


def test_telemetry_takes_no_part() -> None:
    for seed in range(10):
        snapshot = crowded(seed)
        nodes = tuple(
            replace(node, gpus=tuple(replace(gpu, telemetry=readings(0.01)) for gpu in node.gpus))
            for node in snapshot.nodes
        )
        assert places(planned(replace(snapshot, nodes=nodes))) == places(planned(snapshot))


@settings(max_examples=25)
@given(seed=st.integers(0, 500))
def test_nobody_goes_back_where_the_previous_plan_took_him_from(seed: int) -> None:
    snapshot = crowded(seed)
    first = planned(snapshot)
    left = {step.job: step.source for step in first.steps if step.kind == "move" and step.source != step.target}
    # Half of the others are gone: there is room everywhere again.
    rest = tuple(job for at, job in enumerate(apply_steps(snapshot, first.steps).jobs) if job.id in left or at % 2)
    second = planned(replace(snapshot, jobs=rest), first)
    assert all(step.target != left.get(step.job) for step in second.steps)


@settings(max_examples=15)
@given(seed=st.integers(0, 500), data=st.data())
def test_a_plan_half_done_goes_on(seed: int, data: st.DataObject) -> None:
    snapshot = crowded(seed)
    first = planned(snapshot)
    done = data.draw(st.integers(0, max(0, len(first.steps) - 1)))
    second = planned(apply_steps(snapshot, first.steps[:done]), first)
    if second.method == "previous":
        assert places(second) == places(first)[done:]


def test_a_previous_plan_that_is_clearly_worse_or_falls_is_not_kept() -> None:
    whole = [a_job(f"big{at}", shape=a_shape(8, cpu=8000)) for at in range(2)]
    single = [a_job(f"j{at}", f"n{at}", [0], shape=a_shape(1, cpu=1000)) for at in range(4)]
    snapshot = a_snapshot(*(a_node(f"n{at}", 8) for at in range(4)), jobs=[*single, *whole])
    first = planned(snapshot)
    assert [step.kind for step in first.steps][:4] == ["move", "start"] * 2
    assert planned(snapshot, first).method == "previous"
    assert planned(snapshot, replace(first, steps=first.steps[:2])).method == "local_search"
    gone = replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.id != first.steps[0].job))
    assert planned(gone, first).method == "local_search"


def test_costs_within_a_class_do_not_change_the_plan() -> None:
    snapshot = crowded(15)
    for off in (0.95, 1.0, 1.05):
        costs = {
            job.id: MoveCost(gpu_hours=off * (0.5, 2.0, 8.0)[at % 3], work_lost_seconds=60, basis="test")
            for at, job in enumerate(snapshot.jobs)
        }
        plan = plan_rebalance(snapshot, mix_of(snapshot), LIMITS, costs=costs)
        if off == 0.95:
            first = plan
        assert places(plan) == places(first)
