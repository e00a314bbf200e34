"""Cases that people met: what must move, and what never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DeviceShare, Member, ShapeCount
from gpuwatch.model.plan import MoveCost, PlanLimits, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance import exact
from gpuwatch.placement.rebalance.planner import plan_rebalance
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.placement.rebalance.clusters import mix_of
from tests.reference.rebalance import broken_by


@pytest.fixture(autouse=True)
def _search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_NODES", 0)


def planned(snapshot: ClusterSnapshot, costs: dict[str, MoveCost] | None = None, **limits) -> RebalancePlan:
    limits.setdefault("max_moves", 20)
    plan = plan_rebalance(snapshot, mix_of(snapshot), PlanLimits(**limits), costs=costs)
    assert broken_by(plan, snapshot) == []
    return plan


def one(name: str, node: str, device: int, **fields):
    return a_job(name, node, [device], shape=a_shape(1, cpu=1000), **fields)


def big(**fields):
    return a_job("big", shape=a_shape(8, cpu=8000), **fields)


def refused(plan: RebalancePlan) -> dict[str, int]:
    return {each.reason: each.jobs for each in plan.refused}


THIN = [a_node(f"n{at}", 8) for at in range(10)]


def test_ten_nodes_with_one_job_each_still_give_a_plan():
    asked = (ShapeCount(shape=a_shape(8, cpu=8000), count=5), ShapeCount(shape=a_shape(1, cpu=1000), count=5))
    snapshot = a_snapshot(*THIN, jobs=[one(f"j{at}", f"n{at}", 0) for at in range(10)], arrivals=asked)
    plan = planned(snapshot)
    fits = {gain.shape: (gain.fits_before, gain.fits_after) for gain in plan.shapes}
    assert fits["8xGPU 8cpu"] == (0, 8)
    assert plan.usable_change_milligpu > 0


def test_one_node_comes_free_for_a_whole_node_job_never_the_bare_count():
    jobs = [one(f"j{at}{half}", f"n{at}", half) for at in range(3) for half in range(6)]
    jobs = [job for job in jobs if job.name not in ("j02", "j03", "j04", "j05")]
    plan = planned(a_snapshot(*(a_node(f"n{at}", 8) for at in range(3)), jobs=[*jobs, big()]))
    assert [step.kind for step in plan.steps] == ["move", "move", "start"]
    assert {step.source for step in plan.steps[:2]} == {"n0"}
    assert plan.steps[-1].target == "n0"
    assert plan.started_milligpu == 8000


def test_jobs_without_gpus_stay_unless_asked():
    """Idle GPUs that lack CPU: only moving the CPU-only job helps."""
    hog = a_job("hog", "n0", [], shape=a_shape(0, cpu=20_000))
    snapshot = a_snapshot(
        a_node("n0", 2),
        a_node("cpu", 0, cpu_allocatable_millicores=64_000),
        jobs=[hog, a_job("w", shape=a_shape(2, cpu=8000))],
    )
    plan = planned(snapshot)
    assert (plan.steps, plan.reason, refused(plan)) == ((), "nothing_movable", {"cpu_only": 1})
    plan = planned(snapshot, include_cpu_jobs=True)
    assert [(step.kind, step.job, step.target) for step in plan.steps] == [
        ("move", "ml/hog", "cpu"),
        ("start", "ml/w", "n0"),
    ]


HALF_FULL = a_snapshot(a_node("n0", 8), a_node("n1", 8), jobs=[one("j", "n0", 0), one("k", "n1", 0), big()])


def test_the_waiting_job_starts_when_one_moves():
    plan = planned(HALF_FULL)
    assert [step.kind for step in plan.steps] == ["move", "start"]
    assert plan.after.pending_jobs == 0


@pytest.mark.parametrize(
    ("marks", "limits", "reason"),
    [
        ({"protected": True}, {}, "protected"),
        ({"preemptible": False}, {}, "not_preemptible"),
        ({}, {"protect": ("ml/*",)}, "protected"),
        ({"owner": "Deployment/web"}, {"protect": ("Deployment/*",)}, "protected"),
        ({"tenant": "red"}, {"protect": ("red",)}, "protected"),
        ({}, {"tenants": ("others",)}, "other_tenant"),
        ({}, {"pools": ("elsewhere",)}, "other_pool"),
    ],
)
def test_what_may_not_move_stays_and_is_counted(marks, limits, reason):
    jobs = tuple(replace(job, **marks) if job.phase == "running" else job for job in HALF_FULL.jobs)
    plan = planned(replace(HALF_FULL, jobs=jobs), **limits)
    assert plan.steps == ()
    assert refused(plan) == {reason: 2}


def odd_jobs():
    gang = replace(
        one("g", "n0", 0), members=tuple(replace(one("g", "n0", at).members[0], name=f"g{at}") for at in (0, 1))
    )
    unnamed = a_job("u", "n0", shape=a_shape(1))
    sliced = a_job("m", "n0", shape=a_shape(1, mig_profile="1g.10gb"))
    ending = replace(one("t", "n0", 0), members=(replace(one("t", "n0", 0).members[0], terminating=True),))
    return {"gang": gang, "devices_unknown": unnamed, "mig": sliced, "terminating": ending}


@pytest.mark.parametrize(("reason", "job"), odd_jobs().items(), ids=odd_jobs())
def test_what_cannot_be_moved_with_certainty_stays(reason, job):
    slices = (MigInstance(id="1", profile="1g.10gb", compute_slices=1, memory_slices=1),)
    gpus = [a_gpu(0), a_gpu(1), a_gpu(2, mig_enabled=True, mig_instances=slices)]
    plan = planned(a_snapshot(a_node("n0", gpus), a_node("n1", 4), jobs=[job]))
    assert refused(plan) == {reason: 1}


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (one("j", "elsewhere", 0), "node_unknown"),
        (one("j", "n0", 99), "devices_unknown"),
        (
            replace(
                one("j", "n0", 0),
                shape=a_shape(1, 500),
                members=(Member(name="a", node="n0", shares=(DeviceShare(gpu_index=0, milligpu=250),) * 2),),
            ),
            "devices_unknown",
        ),
    ],
    ids=["node", "device", "same device twice"],
)
def test_a_place_that_does_not_add_up_is_named_as_what_it_is(job, reason):
    plan = plan_rebalance(snapshot := a_snapshot(*THIN[:2], jobs=[job]), mix_of(snapshot), PlanLimits(max_moves=9))
    assert refused(plan) == {reason: 1}


def test_equal_names_of_two_tenants_are_two_jobs():
    twins = [replace(one("j", f"n{at}", 0), id=f"{name}/j", tenant=name) for at, name in enumerate(("red", "blue"))]
    plan = planned(a_snapshot(*THIN[:2], jobs=[*twins, big()]), tenants=("red",))
    assert [(step.kind, step.job) for step in plan.steps] == [("move", "red/j"), ("start", "ml/big")]


@pytest.mark.parametrize("blocked", [0, 1])
def test_nothing_goes_to_or_is_gained_on_a_blocked_node(blocked):
    nodes = [replace(node, block_causes=("cordoned",)) if at == blocked else node for at, node in enumerate(THIN[:2])]
    jobs = [one("j", f"n{blocked}", 0), one("k", f"n{1 - blocked}", 0, protected=True), big()]
    plan = planned(a_snapshot(*nodes, jobs=jobs))
    assert all(step.target != f"n{blocked}" for step in plan.steps)
    assert plan.moves == 0


def test_a_device_held_twice_over_is_left_alone():
    snapshot = a_snapshot(a_node("n0", 2), a_node("n1", 2), jobs=[one("a", "n0", 0), one("b", "n0", 0)])
    plan = plan_rebalance(snapshot, mix_of(snapshot), PlanLimits(max_moves=9))
    assert refused(plan) == {"over_allocated": 2}


def test_a_move_must_not_slow_the_job_unless_told():
    snapshot = a_snapshot(
        a_node("n0", 2),
        a_node("n1", 2, model="T4"),
        jobs=[one("j", "n0", 0), a_job("w", shape=a_shape(2, gpu_models=("H100-80",)))],
    )
    assert planned(snapshot).steps == ()
    assert [step.target for step in planned(snapshot, any_model=True).steps] == ["n1", "n0"]


def test_budgets_of_owners_and_tenants():
    """Both jobs of n0 must leave for the waiting one; they belong together."""
    jobs = [one(f"j{at}", "n0", at, owner="Deployment/web") for at in range(2)]
    jobs += [one(f"k{at}", "n1", at, protected=True) for at in range(4)]
    snapshot = a_snapshot(a_node("n0", 8), a_node("n1", 8), jobs=[*jobs, big()])
    assert planned(snapshot).started_milligpu == 0  # a quarter of two members is one
    assert planned(snapshot, max_per_owner=2).started_milligpu == 8000
    assert planned(snapshot, max_per_owner=2, max_per_tenant=1).started_milligpu == 0


def test_work_lost_bounds_the_plan_and_must_be_worth_it():
    costs = {job.id: MoveCost(gpu_hours=5.0, work_lost_seconds=18_000, basis="test") for job in HALF_FULL.jobs}
    assert planned(HALF_FULL, costs).gpu_hours_lost == 5.0
    assert planned(HALF_FULL, costs, max_gpu_hours=4.9).steps == ()
    assert planned(HALF_FULL, costs, horizon_hours=0.5).steps == ()


def test_the_cheaper_of_equal_jobs_moves():
    costs = {"ml/j": MoveCost(gpu_hours=9.0, work_lost_seconds=32_400, basis="test")}
    assert next(step.job for step in planned(HALF_FULL, costs).steps) == "ml/k"
    costs = {"ml/k": costs["ml/j"]}
    assert next(step.job for step in planned(HALF_FULL, costs).steps) == "ml/j"


def test_the_most_urgent_of_equal_waiting_jobs_starts():
    waiting = [replace(big(), id="ml/late", priority=1), replace(big(), id="ml/urgent", priority=5)]
    snapshot = replace(HALF_FULL, jobs=(*HALF_FULL.jobs[:2], *waiting))
    assert [step.job for step in planned(snapshot).steps if step.kind == "start"] == ["ml/urgent"]


def test_what_waits_and_fits_starts_without_a_move():
    plan = planned(a_snapshot(a_node("n0", 8), jobs=[big()]), max_moves=0)
    assert [(step.kind, step.target) for step in plan.steps] == [("start", "n0")]


NOTHING = {
    "no_gpus": a_snapshot(),
    "no_demand": a_snapshot(a_node("n0", 1)),
    "nothing_free": a_snapshot(a_node("n0", 1), jobs=[one("a", "n0", 0)]),
    "nothing_movable": a_snapshot(a_node("n0", 2), jobs=[one("a", "n0", 0, protected=True)]),
    "no_move_gains_enough": a_snapshot(a_node("n0", 2), jobs=[one("a", "n0", 0)]),
}


@pytest.mark.parametrize(("reason", "snapshot"), NOTHING.items(), ids=NOTHING)
def test_nothing_to_do_says_why(reason, snapshot):
    plan = planned(snapshot)
    assert (plan.steps, plan.reason, plan.method) == ((), reason, "none")


def test_waiting_gangs_and_slices_are_counted():
    gang = replace(big(), id="ml/gang", members=(Member(name="a"), Member(name="b")))
    sliced = a_job("slice", shape=a_shape(1, mig_profile="1g.10gb"))
    plan = planned(a_snapshot(a_node("n0", 8), jobs=[gang, sliced]))
    assert refused(plan) == {"pending_gang": 1, "pending_mig": 1}


def test_unknown_cpu_is_no_reason_to_stay_and_a_sick_device_gives_nothing_back():
    sick = [a_gpu(0, health="unhealthy"), *(a_gpu(at) for at in range(1, 8))]
    snapshot = a_snapshot(
        a_node("n0", sick),
        a_node("n1", 8, cpu_allocatable_millicores=None),
        jobs=[one("a", "n0", 0), one("b", "n1", 0), big()],
    )
    plan = planned(snapshot)
    assert [(step.kind, step.job) for step in plan.steps] == [("move", "ml/b"), ("start", "ml/big")]
