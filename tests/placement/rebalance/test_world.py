"""A plan whose world has moved is refused, step by step; one whose world has not is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanLimits, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.planner import plan_rebalance
from gpuwatch.placement.rebalance.world import check_plan
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
