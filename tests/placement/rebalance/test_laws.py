"""Laws that every plan keeps, on random crowded and random odd clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.fit.booking import book
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.plan import MoveCost, PlanLimits, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance import exact
from gpuwatch.placement.rebalance.apply import apply_steps, undo_steps
from gpuwatch.placement.rebalance.planner import plan_rebalance
from gpuwatch.placement.rebalance.world import check_plan
from tests.placement.rebalance.clusters import crowded, mix_of, mixed
from tests.reference.rebalance import broken_by

LIMITS = st.builds(
    PlanLimits,
    max_moves=st.sampled_from((0, 1, 3, 8, 40)),
    max_gpu_hours=st.sampled_from((None, 0.0, 2.5, 100.0)),
    max_per_owner=st.sampled_from((None, 0, 1, 2)),
    max_per_tenant=st.sampled_from((None, None, 1, 3)),
    protect=st.sampled_from(((), (), ("red",), ("ml/j1*", "Job/sweep"))),
    tenants=st.sampled_from(((), (), ("blue",))),
    include_cpu_jobs=st.booleans(),
    any_model=st.booleans(),
)


@pytest.fixture(autouse=True)
def _search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact planner has tests of its own, and takes seconds."""
    monkeypatch.setattr(exact, "MOST_NODES", 0)


def costs_of(snapshot: ClusterSnapshot) -> dict[str, MoveCost]:
    return {
        job.id: MoveCost(
            gpu_hours=job.shape.milligpu / 1000 * (at % 5), work_lost_seconds=3600 * (at % 5), basis="test"
        )
        for at, job in enumerate(snapshot.jobs)
    }


def planned(snapshot: ClusterSnapshot, limits: PlanLimits) -> RebalancePlan:
    return plan_rebalance(snapshot, mix_of(snapshot), limits, costs=costs_of(snapshot))


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), limits=LIMITS, odd=st.booleans())
def test_no_step_breaks_a_limit(seed: int, limits: PlanLimits, odd: bool) -> None:
    snapshot = mixed(seed) if odd else crowded(seed)
    plan = planned(snapshot, limits)
    assert broken_by(plan, snapshot) == []
    assert book(apply_steps(snapshot, plan.steps)).findings == book(snapshot).findings


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), cpu=st.booleans(), odd=st.booleans())
def test_the_gain_told_is_the_gain_measured(seed: int, cpu: bool, odd: bool) -> None:
    """Also after every single step: what the step says so far is what booking that cluster anew says."""
    snapshot = mixed(seed) if odd else crowded(seed)
    mix = mix_of(snapshot)
    plan = planned(snapshot, PlanLimits(max_moves=10, include_cpu_jobs=cpu))
    first = fragmentation_report(book(snapshot), mix).overall
    for count in range(1, len(plan.steps) + 1):
        step = plan.steps[count - 1]
        at = apply_steps(snapshot, plan.steps[:count])
        scope = fragmentation_report(book(at), mix).overall
        stranded = scope.stranded_milligpu - first.stranded_milligpu
        rounding = len(snapshot.nodes)  # each node's share is told to the thousandth
        assert step.stranded_milligpu == pytest.approx(stranded, abs=rounding)
        assert step.usable_milligpu == pytest.approx(scope.free_milligpu - first.free_milligpu - stranded, abs=rounding)
        waiting = {job.id for job in snapshot.jobs if job.phase == "pending"}
        started = sum(job.shape.milligpu for job in at.jobs if job.phase == "running" and job.id in waiting)
        assert step.started_milligpu == started
    if plan.steps:
        assert plan.started_milligpu == plan.steps[-1].started_milligpu
        assert plan.after.free_milligpu == scope.free_milligpu
        assert plan.after.stranded_milligpu == pytest.approx(scope.stranded_milligpu)
        assert plan.started_milligpu or plan.usable_change_milligpu > 0


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_undoing_restores_the_snapshot(seed: int, data: st.DataObject) -> None:
    snapshot = crowded(seed)
    plan = planned(snapshot, PlanLimits(max_moves=8, include_cpu_jobs=True))
    done = plan.steps[: data.draw(st.integers(0, len(plan.steps)))]
    assert undo_steps(apply_steps(snapshot, done), plan, done) == snapshot


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_plan_stands_where_it_was_made_and_after_each_of_its_steps(seed: int, data: st.DataObject) -> None:
    snapshot = crowded(seed)
    plan = planned(snapshot, PlanLimits(max_moves=8, include_cpu_jobs=True))
    done = data.draw(st.integers(0, len(plan.steps)))
    verdict = check_plan(plan, apply_steps(snapshot, plan.steps[:done]))
    assert verdict.valid
    assert [each.verdict for each in verdict.steps] == ["done"] * done + ["ok"] * (len(plan.steps) - done)
    assert verdict.changed_nodes == ()


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_snapshot_decides_nothing_but_ties_of_equal_names(seed: int) -> None:
    """Sources list nodes and jobs in any order; the plan is the same."""
    snapshot = crowded(seed)
    turned = replace(snapshot, nodes=snapshot.nodes[::-1], jobs=snapshot.jobs[::-1])
    limits = PlanLimits(max_moves=6, include_cpu_jobs=True)
    assert planned_steps(turned, limits) == planned_steps(snapshot, limits)


def planned_steps(snapshot: ClusterSnapshot, limits: PlanLimits) -> list[tuple[str, str, tuple[int, ...]]]:
    plan = plan_rebalance(snapshot, mix_of(snapshot), limits)
    return [(step.job, step.target, step.target_gpus) for step in plan.steps]


def test_these_clusters_give_plans_to_judge() -> None:
    """Without steps none of the laws above could be broken."""
    plans = [planned(crowded(seed), PlanLimits(max_moves=8, include_cpu_jobs=True)) for seed in range(30)]
    assert sum(plan.moves > 0 for plan in plans) >= 12
    assert sum(plan.starts > 0 for plan in plans) >= 3


@pytest.mark.parametrize(
    "change", [{"target_gpus": (0, 0)}, {"target": "n0"}, {"source": "n1"}, {"job": "ml/j6"}, {"source_gpus": (0,)}]
)
def test_the_judge_sees_a_step_that_was_tampered_with(change: dict) -> None:
    snapshot = crowded(15)
    plan = planned(snapshot, PlanLimits(max_moves=8))
    assert plan.steps
    assert plan.steps[0].target != "n0"
    wrong = replace(plan, steps=(replace(plan.steps[0], **change), *plan.steps[1:]))
    assert broken_by(wrong, snapshot)
