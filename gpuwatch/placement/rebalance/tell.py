"""Steps as a person reads them: names instead of positions, what each adds up to, and how it is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanStep
from gpuwatch.placement.rebalance.ground import Ground, Moved, Step
from gpuwatch.placement.rebalance.survey import NO_COST, Survey


def told_steps(found: Survey, steps: Sequence[Step]) -> tuple[PlanStep, ...]:
    """`steps` played on the survey's ground, which is left as it was."""
    ground = found.ground
    mark = ground.mark()
    usable_at_first, free_at_first = int(ground.usable.sum()), int(ground.states.left.sum())
    starting = [list(ids) for ids in found.waiting]
    out: list[PlanStep] = []
    started = 0
    for step in steps:
        if isinstance(step, Moved):
            ground.move(step.piece, step.row, step.devices)
            job = found.jobs[ground.pieces[step.piece].job]
        else:
            ground.start((step.which, step.devices), step.row)
            job = found.jobs[starting[step.which].pop(0)]
            started += ground.queue.asks[step.which].milligpu
        usable = int(ground.usable.sum()) - usable_at_first
        stranded = int(ground.states.left.sum()) - free_at_first - usable
        told = _told(found, step, job, len(out) + 1)
        out.append(
            replace(
                told,
                started_milligpu=started,
                usable_milligpu=float(usable),
                stranded_milligpu=float(stranded),
                gpu_hours_lost=round(ground.gpu_hours, 3),
            )
        )
    ground.restore(mark)
    return tuple(out)


def _told(found: Survey, step: Step, job: Job, order: int) -> PlanStep:
    ground = found.ground
    names = ground.columns.names
    moved = isinstance(step, Moved)
    source = names[ground.pieces[step.piece].row] if isinstance(step, Moved) else None
    source_gpus = (
        _indexes(ground, ground.pieces[step.piece].row, ground.pieces[step.piece].devices)
        if isinstance(step, Moved)
        else ()
    )
    models = {ground.columns.model[step.row, device] for device in step.devices}
    model = models.pop() if len(models) == 1 else -1
    return PlanStep(
        order=order,
        kind="move" if moved else "start",
        job=job.id,
        member=job.members[0].name,
        tenant=job.tenant,
        owner=job.owner,
        shape=job.shape.label,
        milligpu_per_gpu=job.shape.milligpu_per_gpu,
        gpu_model=ground.columns.models[model] if model >= 0 else None,
        source=source,
        source_gpus=source_gpus,
        target=names[step.row],
        target_gpus=_indexes(ground, step.row, step.devices),
        cost=found.costs.get(job.id, NO_COST) if moved else None,
        undo=_undo(job, source, source_gpus),
    )


def _undo(job: Job, source: str | None, gpus: tuple[int, ...]) -> str:
    if source is None:
        return f"end {job.id}: it waits again"
    where = f" GPU {','.join(map(str, gpus))}" if gpus else ""
    return f"move {job.id} back to {source}{where}"


def _indexes(ground: Ground, row: int, devices: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(ground.columns.gpu_index[row, device]) for device in devices)
