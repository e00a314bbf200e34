"""Does the steps of a plan on a snapshot, and takes them back: what a plan means, in the simplest words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.plan import PlanStep, RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot


def apply_steps(snapshot: ClusterSnapshot, steps: Iterable[PlanStep]) -> ClusterSnapshot:
    """`snapshot` after `steps`, unchecked: each job's one member stands where its last step puts it."""
    last = {step.job: step for step in steps}
    return replace(snapshot, jobs=tuple(_placed(job, last[job.id]) if job.id in last else job for job in snapshot.jobs))


def undo_steps(snapshot: ClusterSnapshot, plan: RebalancePlan, done: Iterable[PlanStep]) -> ClusterSnapshot:
    """`snapshot` with the steps `done` of `plan` taken back: their jobs are as the plan found them."""
    before = {each.job: each for each in plan.jobs_before}
    names = {step.job for step in done}

    def back(job: Job) -> Job:
        if job.id not in names:
            return job
        was = before[job.id]
        return replace(job, phase=was.phase, pending_reason=was.pending_reason, members=(was.member,))

    return replace(snapshot, jobs=tuple(back(job) for job in snapshot.jobs))


def placed_member(job: Job, step: PlanStep) -> Member:
    """The job's member where `step` puts it."""
    shares = tuple(DeviceShare(gpu_index=index, milligpu=step.milligpu_per_gpu) for index in step.target_gpus)
    return replace(job.members[0], node=step.target, shares=shares, devices_known=True)


def _placed(job: Job, step: PlanStep) -> Job:
    return replace(job, phase="running", pending_reason=None, members=(placed_member(job, step),))
