"""What moving a job loses, for the planner on the floor below; and the lines to run for each move of a plan."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.move_lines import lines
from gpuwatch.advice.risks import stop_risk
from gpuwatch.model.plan import MoveCost, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import HOUR_SECONDS, MILLI


def move_costs(context: AdviceContext) -> dict[str, MoveCost]:
    """The work lost by ending each bound job once, by id: its GPUs times the time since it was last saved."""
    found: dict[str, MoveCost] = {}
    for job in context.snapshot.jobs:
        if job.phase == "finished" or all(member.node is None for member in job.members):
            continue
        risk = stop_risk(job, context, "ends the job once")
        seconds = risk.work_lost_seconds or 0
        gpus = job.shape.demanded_milligpu * len(job.members) / MILLI
        found[job.id] = MoveCost(
            gpu_hours=round(gpus * seconds / HOUR_SECONDS, 3), work_lost_seconds=seconds, basis=risk.basis or ""
        )
    return found


def with_commands(plan: RebalancePlan, snapshot: ClusterSnapshot) -> RebalancePlan:
    """The plan with the lines that a person runs for each move, each with its undo. A start needs none."""
    jobs = {job.id: job for job in snapshot.jobs}
    takes_work = {node.name: node.takes_work for node in plan.nodes_before}
    steps = tuple(
        replace(step, commands=lines(step, jobs[step.job], takes_work.get(step.source or "", False)))
        if step.kind == "move"
        else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)
