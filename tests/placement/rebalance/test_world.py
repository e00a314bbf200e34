"""A plan whose world has moved is refused, step by step; one whose world has not is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanLimits, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.planner import plan_rebalance
from gpuwatch.placement.rebalance.previous import left_behind
from gpuwatch.placement.rebalance.world import check_plan, job_before
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.rebalance.clusters import mix_of

BIG = a_job("big", shape=a_shape(8, cpu=40_000, memory_bytes=2**30))
WORLD = a_snapshot(
    *(a_node(f"n{at}", 8) for at in range(3)),
    jobs=[
        a_job("j", "n0", [0], shape=a_shape(1, cpu=1000, memory_bytes=2**30)),
        *(a_job(f"k{at}", "n1", [at], shape=a_shape(1, cpu=1000), protected=True) for at in range(6)),
        a_job("far", "n2", list(range(8)), shape=a_shape(8, cpu=1000), protected=True),
        BIG,
    ],
)


@pytest.fixture(scope="module")
def plan() -> RebalancePlan:
    made = plan_rebalance(WORLD, mix_of(WORLD), PlanLimits(max_moves=1))
    assert [(step.kind, step.job, step.source, step.target) for step in made.steps] == [
        ("move", "ml/j", "n0", "n1"),
        ("start", "ml/big", None, "n0"),
    ]
    return made


def with_job(change, name: str = "j") -> ClusterSnapshot:
    return replace(WORLD, jobs=tuple(change(job) if job.name == name else job for job in WORLD.jobs))


def with_node(name: str, change) -> ClusterSnapshot:
    return replace(WORLD, nodes=tuple(change(node) if node.name == name else node for node in WORLD.nodes))


def plus(*jobs: Job) -> ClusterSnapshot:
    return replace(WORLD, jobs=(*WORLD.jobs, *jobs))


def on(job: Job, node: str, device: int) -> Job:
    return replace(job, members=a_job("x", node, [device]).members, phase="running")


def gpus(change):
    return lambda node: replace(node, gpus=tuple(change(gpu) for gpu in node.gpus))


def moved_worlds(target: int) -> dict[str, tuple[ClusterSnapshot, int]]:
    """Reason -> (world, step refused)."""
    return {
        "job_gone": (replace(WORLD, jobs=WORLD.jobs[1:]), 1),
        "job_moved": (with_job(lambda job: on(job, "n2", 7)), 1),
        "job_protected": (with_job(lambda job: replace(job, protected=True)), 1),
        "job_changed": (with_job(lambda job: replace(job, shape=a_shape(1, cpu=2000))), 1),
        "node_gone": (replace(WORLD, nodes=(WORLD.nodes[0], WORLD.nodes[2])), 1),
        "node_blocked": (with_node("n1", lambda node: replace(node, block_causes=("cordoned",))), 1),
        "other_pool": (with_node("n1", lambda node: replace(node, pool="elsewhere")), 1),
        "gpu_changed": (with_node("n1", gpus(lambda gpu: replace(gpu, model="T4"))), 1),
        "gpu_unusable": (with_node("n1", gpus(lambda gpu: replace(gpu, health="unhealthy"))), 1),
        "target_taken": (plus(a_job("new", "n1", [target], shape=a_shape(1, cpu=0))), 1),
        "cpu_lacking": (plus(a_job("hog", "n1", [], shape=a_shape(0, cpu=89_500))), 1),
        "memory_lacking": (plus(a_job("hog", "n1", [], shape=a_shape(0, cpu=0, memory_bytes=800 * 2**30))), 1),
        "job_moved:start": (with_job(lambda job: on(job, "n2", 7), "big"), 2),
        "job_changed:start": (with_job(lambda job: replace(job, phase="gated"), "big"), 2),
    }


@pytest.mark.parametrize("case", moved_worlds(0))
def test_each_way_that_the_world_moves_is_named(case: str, plan: RebalancePlan) -> None:
    world, refused = moved_worlds(plan.steps[0].target_gpus[0])[case]
    verdict = check_plan(plan, world)
    assert not verdict.valid
    told = verdict.steps[refused - 1]
    assert (told.verdict, told.reason) == ("refused", case.partition(":")[0])
    assert told.detail
    assert verdict.sound_steps == refused - 1


def edited(plan: RebalancePlan, at: int, **fields) -> RebalancePlan:
    steps = list(plan.steps)
    steps[at] = replace(steps[at], **fields)
    return replace(plan, steps=tuple(steps))


@pytest.mark.parametrize(
    ("at", "fields"),
    [
        (0, {"milligpu_per_gpu": 500}),
        (0, {"target_gpus": ()}),
        (0, {"source": "n2"}),
        (0, {"source_gpus": (3,)}),
        (0, {"shape": "1xGPU"}),
        (1, {"target_gpus": (0,) * 8}),
        (1, {"target_gpus": (1,)}),
    ],
)
def test_a_step_that_was_edited_is_refused(at: int, fields: dict, plan: RebalancePlan) -> None:
    verdict = check_plan(edited(plan, at, **fields), WORLD)
    assert next(each.reason for each in verdict.steps if each.verdict == "refused") == "step_unsound"


def test_a_card_that_the_job_does_not_accept_is_refused(plan: RebalancePlan) -> None:
    picky = with_job(lambda job: replace(job, shape=replace(job.shape, gpu_models=("T4",))))
    job = next(job for job in picky.jobs if job.name == "j")
    known = tuple(job_before(job) if each.job == job.id else each for each in plan.jobs_before)
    verdict = check_plan(edited(replace(plan, jobs_before=known), 0, shape=job.shape.label), picky)
    assert verdict.steps[0].reason == "gpu_changed"


def test_every_step_is_refused_in_another_cluster(plan: RebalancePlan) -> None:
    verdict = check_plan(plan, replace(WORLD, cluster="elsewhere"))
    assert {each.reason for each in verdict.steps} == {"other_cluster"}
    assert not verdict.valid


OWNED = "ReplicaSet/web-7d4b9c6f5d"


def restarted(name: str, node: str, device: int, **fields) -> Job:
    """What the owner of j started when j was ended."""
    shape = a_shape(1, cpu=1000, memory_bytes=2**30)
    return replace(a_job(name, node, [device], shape=shape, owner=OWNED), **fields)


@pytest.fixture(scope="module")
def owned() -> tuple[ClusterSnapshot, RebalancePlan]:
    world = with_job(lambda job: replace(job, owner=OWNED))
    return world, plan_rebalance(world, mix_of(world), PlanLimits(max_moves=1))


@pytest.mark.parametrize(
    ("fields", "verdicts"),
    [
        ({}, ["done", "ok"]),
        ({"owner": "ReplicaSet/db-7d4b9c6f5d"}, ["refused", "ok"]),
        ({"tenant": "other"}, ["refused", "ok"]),
        ({"shape": a_shape(1, cpu=1000)}, ["refused", "ok"]),
    ],
)
def test_a_pod_that_its_owner_started_anew_stands_in(fields: dict, verdicts: list[str], owned) -> None:
    world, plan = owned
    new = restarted("j-new", "n1", plan.steps[0].target_gpus[0], **fields)
    later = replace(world, jobs=(*(job for job in world.jobs if job.name != "j"), new))
    verdict = check_plan(plan, later)
    assert [each.verdict for each in verdict.steps] == verdicts
    if verdicts[0] == "done":
        assert verdict.changed_nodes == ()
    ended = replace(next(job for job in world.jobs if job.name == "j"), phase="finished", members=())
    again = check_plan(plan, replace(later, jobs=(*later.jobs, ended)))
    assert [each.verdict for each in again.steps] == verdicts


def test_who_ran_there_before_does_not_stand_in(owned) -> None:
    """A brother of j shares the target device already; j alone is gone."""
    half = a_shape(1, 400, cpu=1000)
    jobs = [
        a_job("j", "n0", [0], shape=half, owner=OWNED),
        a_job("brother", "n1", [0], shape=half, owner=OWNED, protected=True),
        BIG,
    ]
    world = a_snapshot(a_node("n0", 8), a_node("n1", 1), jobs=jobs)
    plan = plan_rebalance(world, mix_of(world), PlanLimits(max_moves=1))
    assert [(step.job, step.target, step.target_gpus) for step in plan.steps[:1]] == [("ml/j", "n1", (0,))]
    assert [each.peers for each in plan.jobs_before if each.job == "ml/j"] == [("ml/brother",)]
    gone = check_plan(plan, replace(world, jobs=world.jobs[1:]))
    assert [each.reason for each in gone.steps] == ["job_gone", None]
    both = replace(world, jobs=(*world.jobs[1:], a_job("new", "n1", [0], shape=half, owner=OWNED)))
    assert [each.verdict for each in check_plan(plan, both).steps] == ["done", "ok"]


def test_the_previous_plan_goes_on_from_a_pod_started_anew(owned) -> None:
    world, plan = owned
    new = restarted("j-new", "n1", plan.steps[0].target_gpus[0])
    later = replace(world, jobs=(*(job for job in world.jobs if job.name != "j"), new))
    kept = plan_rebalance(later, mix_of(later), PlanLimits(max_moves=1), previous=plan)
    assert [(step.kind, step.job) for step in kept.steps] == [("start", "ml/big")]
    assert left_behind(plan, later.jobs) == {"ml/j-new": frozenset({"n0"})}


def test_a_plan_of_another_cluster_is_no_previous_one(plan: RebalancePlan) -> None:
    there = replace(WORLD, cluster="elsewhere")
    assert plan_rebalance(there, mix_of(there), PlanLimits(max_moves=1), previous=plan).method != "previous"


def test_a_step_that_rests_on_a_refused_one_is_refused_too(plan: RebalancePlan) -> None:
    verdict = check_plan(plan, with_job(lambda job: replace(job, protected=True)))
    assert [each.reason for each in verdict.steps] == ["job_protected", "target_taken"]


@pytest.mark.parametrize(
    "world",
    [
        replace(WORLD, jobs=tuple(job for job in WORLD.jobs if job.name != "far")),
        plus(a_job("new", "n2", [7], shape=a_shape(1, cpu=0))),
        with_node("n2", lambda node: replace(node, block_causes=("cordoned",))),
        with_job(lambda job: replace(job, pending_reason="Unschedulable", priority=3), "big"),
        with_job(lambda job: replace(job, last_checkpoint_at=WORLD.taken_at)),
        replace(WORLD, jobs=WORLD.jobs[::-1], nodes=WORLD.nodes[::-1]),
    ],
)
def test_what_does_not_concern_it_refuses_nothing(world: ClusterSnapshot, plan: RebalancePlan) -> None:
    verdict = check_plan(plan, world)
    assert verdict.valid
    assert verdict.changed_nodes == ()


def test_a_harmless_change_of_a_touched_node_is_named(plan: RebalancePlan) -> None:
    free = next(at for at in range(8) if at > 5 and at not in plan.steps[0].target_gpus)
    verdict = check_plan(plan, plus(a_job("new", "n1", [free], shape=a_shape(1, cpu=0))))
    assert verdict.valid
    assert verdict.changed_nodes == ("n1",)
