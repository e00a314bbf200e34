"""What a plan relies on, and whether it still holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from gpuwatch.fit.booking import BookedNode, book, node_block_cause
from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import JobBefore, NodeBefore, PlanStep, PlanVerdict, RebalancePlan, StepVerdict
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.apply import undo_steps
from gpuwatch.placement.rebalance.done import is_done, stand_ins
from gpuwatch.placement.rebalance.room import Room


def node_before(booked: BookedNode) -> NodeBefore:
    """The state of a node that a plan remembers."""
    return NodeBefore(
        name=booked.node.name,
        takes_work=node_block_cause(booked.node) is None,
        gpu_indexes=tuple(gpu.index for gpu in booked.node.gpus),
        gpu_models=tuple(gpu.model for gpu in booked.node.gpus),
        free_milligpu=tuple(booked.free_milligpu),
        cpu_free_millicores=booked.cpu_free_millicores,
        memory_free_bytes=booked.memory_free_bytes,
    )


def job_before(job: Job, peers: tuple[str, ...] = ()) -> JobBefore:
    """The state of a job of one member that a plan remembers. peers: others of its owner where the plan does things."""
    return JobBefore(
        job=job.id,
        fingerprint=fingerprint(job),
        phase="running" if job.phase == "running" else "pending",
        pending_reason=job.pending_reason,
        member=job.members[0],
        peers=peers,
    )


def fingerprint(job: Job) -> str:
    """12 hex digits of what the plan relies on in a job. Times and reasons may change without harm."""
    where = [(m.name, m.node, m.shares, m.devices_known, m.terminating) for m in job.members]
    text = repr((job.id, job.shape, job.phase, job.pool, job.protected, job.preemptible, where))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def touched_nodes(steps: Iterable[PlanStep]) -> list[str]:
    """Names of the nodes that steps leave or enter, sorted."""
    return sorted({name for step in steps for name in (step.source, step.target) if name is not None})


def check_plan(plan: RebalancePlan, snapshot: ClusterSnapshot, evaluation_id: str = "") -> PlanVerdict:
    """Every step of `plan` against `snapshot`, in order: a step whose job is at its target is done, the others must
    find their job as it was and their target free, after the steps before them. In another cluster none of them does.
    """
    snapshot = _with_old_names(snapshot, stand_ins(plan, snapshot.jobs))
    foreign = None if snapshot.cluster == plan.cluster else _foreign(plan, snapshot)
    jobs = {job.id: job for job in snapshot.jobs}
    before = {each.job: each for each in plan.jobs_before}
    models = {
        (node.name, index): model
        for node in plan.nodes_before
        for index, model in zip(node.gpu_indexes, node.gpu_models, strict=True)
    }
    room = Room(book(snapshot))
    verdicts: list[StepVerdict] = []
    for step in plan.steps:
        job = jobs.get(step.job)
        if foreign is None and job is not None and is_done(step, job):
            verdicts.append(_verdict(step, "done"))
            continue
        fault = foreign or _job_fault(job, before[step.job]) or _step_fault(step, job, before[step.job])
        fault = fault or room.fault(step, job, models)
        if fault is None:
            room.do(step, job)
        verdicts.append(_verdict(step, "refused" if fault else "ok", fault))
    sound = next((at for at, each in enumerate(verdicts) if each.verdict == "refused"), len(verdicts))
    return PlanVerdict(
        plan_evaluation_id=plan.evaluation_id,
        evaluation_id=evaluation_id,
        cluster=snapshot.cluster,
        valid=sound == len(verdicts),
        steps=tuple(verdicts),
        steps_to_do=sum(each.verdict != "done" for each in verdicts),
        sound_steps=sound,
        changed_nodes=_changed(plan, verdicts, snapshot),
    )


def _verdict(
    step: PlanStep, verdict: Literal["ok", "done", "refused"], fault: tuple[str, str] | None = None
) -> StepVerdict:
    code, detail = fault or (None, None)
    return StepVerdict(order=step.order, kind=step.kind, job=step.job, verdict=verdict, reason=code, detail=detail)


def _with_old_names(snapshot: ClusterSnapshot, standing_in: Mapping[str, Job]) -> ClusterSnapshot:
    if not standing_in:
        return snapshot
    old = {job.id: name for name, job in standing_in.items()}
    there = [job for job in snapshot.jobs if job.id not in standing_in]  # what is listed under the old name has ended
    return replace(snapshot, jobs=tuple(replace(job, id=old.get(job.id, job.id)) for job in there))


def _foreign(plan: RebalancePlan, snapshot: ClusterSnapshot) -> tuple[str, str]:
    return "other_cluster", f"the plan was made for {plan.cluster}, this is {snapshot.cluster}"


def _step_fault(step: PlanStep, job: Job | None, was: JobBefore) -> tuple[str, str] | None:
    """What a step says of itself must fit the job that it moves or starts: a plan may have been edited."""
    if job is None:
        return None
    gpus = step.target_gpus
    if len(set(gpus)) != len(gpus) or len(gpus) != job.shape.gpus or step.shape != job.shape.label:
        return "step_unsound", f"the step names {len(gpus)} devices for {step.shape}; {job.id} is {job.shape.label}"
    if gpus and step.milligpu_per_gpu != job.shape.milligpu_per_gpu:
        return "step_unsound", f"the step takes another share of a GPU than {job.id} asks for"
    held = tuple(sorted(share.gpu_index for share in was.member.shares))
    if step.kind == "move" and (step.source, tuple(sorted(step.source_gpus))) != (was.member.node, held):
        return "step_unsound", f"the step takes {job.id} from where it is not"
    return None


def _job_fault(job: Job | None, was: JobBefore) -> tuple[str, str] | None:
    if job is None or job.phase == "finished":
        return "job_gone", f"{was.job} has ended or is not there"
    if fingerprint(job) == was.fingerprint:
        return None
    now = [member.node for member in job.members]
    if now != [was.member.node]:
        there = ", ".join(name or "no node" for name in now) or "no node"
        return "job_moved", f"{was.job} is on {there}, it was on {was.member.node or 'no node'}"
    if job.protected or job.preemptible is False:
        return "job_protected", f"{was.job} is no longer to be moved"
    return "job_changed", f"{was.job} has another shape, phase or devices than the plan knew"


def _changed(plan: RebalancePlan, verdicts: list[StepVerdict], snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Touched nodes that differ from what the plan knew, leaving out what its own done steps changed."""
    done = [step for step, told in zip(plan.steps, verdicts, strict=True) if told.verdict == "done"]
    booking = book(undo_steps(snapshot, plan, done))
    now = {name: node_before(booked) for name, booked in booking.nodes.items()}
    return tuple(was.name for was in plan.nodes_before if now.get(was.name) != was)
