"""The lines that a person runs for one move of a plan, in an order that is safe to paste.

No scheduler moves a job: it is ended and started again. What keeps it from coming back to the place that it left, and
what brings it to its target, differs between schedulers, and the notes say what nobody can promise.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.advice import commands
from gpuwatch.model.evaluation import Command
from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanStep

_LOOKS = "nothing to undo: it only looks"
_BY_HAND = "gpuwatch does not run this; a person decides"


def lines(step: PlanStep, job: Job, source_takes_work: bool) -> tuple[Command, ...]:
    """The lines for `step`, a move of `job`. source_takes_work: False leaves a cordon that others set alone."""
    if commands.is_slurm(job):
        return _slurm(step, job)
    if step.source is None or step.source == step.target:
        where = f"{step.target} GPU {','.join(map(str, step.target_gpus))}"
        note = f"expected on {where}: the device plugin chooses the GPU, look before the next step; {_BY_HAND}"
        moved = _noted(commands.move(job, step.target), note)
        if job.owner:  # its node is open all the time: there is no cordon to lift
            look = f"kubectl -n {shlex.quote(commands.namespace(job))} get pod -o wide"
            moved = tuple(
                replace(each, undo=f"{look}  # its owner has started it again, on any free GPU") for each in moved
            )
        return *moved, _wait(job)
    note = f"the scheduler chooses a node with room, {step.target} is expected; {_BY_HAND}"
    moved = (*_noted(commands.move(job, step.target), note), _wait(job))
    if not source_takes_work:
        return moved
    closed = replace(commands.cordon(step.source), note=f"so that {job.id} does not come back to {step.source}")
    opened = replace(
        commands.uncordon(step.source), note=f"only when {job.id} runs elsewhere: look with the line above"
    )
    return closed, *moved, opened


def _noted(found: Sequence[Command], note: str) -> tuple[Command, ...]:
    return tuple(replace(each, note=note) for each in found)


def _wait(job: Job) -> Command:
    """Waits until the job runs again where its owner can tell, else shows where it is."""
    kind, owner = commands.owner_of(job)
    head = f"kubectl -n {shlex.quote(commands.namespace(job))}"
    if kind in ("deployment", "statefulset"):
        run = f"{head} rollout status {kind}/{shlex.quote(owner)} && {head} get pod -o wide"
        return Command(run=run, undo=_LOOKS, note="until it runs again")
    if not kind:
        pods = " ".join(shlex.quote(f"pod/{commands.pod(member)}") for member in job.members)
        run = f"{head} wait --for=condition=Ready --timeout=10m {pods} && {head} get {pods} -o wide"
        return Command(run=run, undo=_LOOKS, note="until it runs again")
    return Command(run=f"{head} get pod -o wide", undo=_LOOKS, note="go on when it runs again")


def _slurm(step: PlanStep, job: Job) -> tuple[Command, ...]:
    """Held first: the nodes of a job can be set only while it waits, and it must not start before they are."""
    node = shlex.quote(step.target)
    update = f"scontrol update JobId={job.id} ReqNodeList="
    chosen = f"it starts on {step.target} or waits; Slurm chooses the GPU there; {_BY_HAND}"
    return (
        Command(
            run=f"scontrol requeuehold {job.id}",
            undo=f"scontrol release {job.id}",
            note=f"ends it, and it waits on hold; {_BY_HAND}",
        ),
        Command(run=f"{update}{node}", undo=update, note=chosen),
        Command(run=f"scontrol release {job.id}", undo=f"scontrol hold {job.id}", note="lets it start"),
    )
