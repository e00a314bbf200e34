"""Which steps of a plan are done already, also where the job that was moved has another name now.

On Kubernetes a moved pod is ended, and its owner starts another one with a new name. That one stands in for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanStep, RebalancePlan


def is_done(step: PlanStep, job: Job) -> bool:
    """Whether `job` runs where `step` puts it."""
    if len(job.members) != 1:
        return False
    member = job.members[0]
    gpus = tuple(sorted(share.gpu_index for share in member.shares))
    return job.phase == "running" and member.node == step.target and gpus == tuple(sorted(step.target_gpus))


def stand_ins(plan: RebalancePlan, jobs: Iterable[Job]) -> dict[str, Job]:
    """By the name of a job that is gone: the job of the same owner and form that runs at the target of its move.

    Jobs of that owner which the plan saw there before are not taken for it.
    """
    named = {job.id: job for job in jobs if job.phase != "finished"}
    before = {each.job: each for each in plan.jobs_before}
    moves = [step for step in plan.steps if step.kind == "move" and step.owner and step.job not in named]
    seen = {*before, *(peer for step in moves for peer in before[step.job].peers)}
    arrived: dict[tuple[str | None, str | None, str], list[Job]] = defaultdict(list)
    for job in named.values():
        if job.id not in seen and job.members:
            arrived[job.tenant, job.owner, job.shape.label].append(job)
    found: dict[str, Job] = {}
    for step in moves:
        candidates = arrived[step.tenant, step.owner, step.shape]
        match = next((job for job in candidates if is_done(step, job)), None)
        if match is not None:
            candidates.remove(match)  # each stands in for one
            found[step.job] = match
    return found


def peers_of(jobs: Iterable[Job], nodes: Iterable[str], moved: Iterable[Job]) -> Mapping[str, tuple[str, ...]]:
    """For each moved job with an owner: ids of the others of that owner on `nodes`, sorted."""
    wanted = {(job.tenant, job.owner) for job in moved if job.owner}
    here = set(nodes)
    of: dict[tuple[str | None, str | None], list[str]] = defaultdict(list)
    for job in jobs:
        if (job.tenant, job.owner) in wanted and any(member.node in here for member in job.members):
            of[job.tenant, job.owner].append(job.id)
    return {job.id: tuple(sorted({*of[job.tenant, job.owner]} - {job.id})) for job in moved if job.owner}
