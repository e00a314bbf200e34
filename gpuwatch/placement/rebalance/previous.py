"""What the plan before this one means for this one: a plan that flips with every look is worse than none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanStep, RebalancePlan
from gpuwatch.placement.rebalance.done import is_done, stand_ins
from gpuwatch.placement.rebalance.ground import Ground, Moved, Started, Step
from gpuwatch.placement.rebalance.prune import Trial
from gpuwatch.placement.rebalance.survey import Survey


def left_behind(previous: RebalancePlan | None, jobs: Sequence[Job]) -> dict[str, frozenset[str]]:
    """Nodes that each job left, or was to leave, by the previous plan: it does not go back, nor does its stand-in."""
    found: dict[str, set[str]] = defaultdict(set)
    if previous is None:
        return {}
    now = stand_ins(previous, jobs)
    for step in previous.steps:
        if step.kind == "move" and step.source is not None and step.source != step.target:
            found[now[step.job].id if step.job in now else step.job].add(step.source)
    return {job: frozenset(nodes) for job, nodes in found.items()}


def steps_again(previous: RebalancePlan, found: Survey) -> list[Step] | None:
    """The steps of `previous` that are still to do, on the ground of now; None when one no longer stands."""
    ground = found.ground
    now = stand_ins(previous, found.jobs.values())
    rows = {name: row for row, name in enumerate(ground.columns.names)}
    pieces = {piece.job: at for at, piece in enumerate(ground.pieces)}
    asks = {job: which for which, ids in enumerate(found.waiting) for job in ids}
    steps: list[Step] = []
    for told in previous.steps:
        job = now.get(told.job) or found.jobs.get(told.job)
        if job is not None and is_done(told, job):
            continue
        row = rows.get(told.target)
        devices = None if row is None else _columns(ground, row, told.target_gpus)
        if row is None or devices is None:
            return None
        if told.kind == "start" and told.job in asks:
            steps.append(Started(asks[told.job], row, devices))
        elif told.kind == "move" and told.job in pieces and _is_source(ground, pieces[told.job], told):
            steps.append(Moved(pieces[told.job], row, devices))
        else:
            return None
    return steps if _allowed(ground, steps) and Trial(ground).plays(steps) else None


def _columns(ground: Ground, row: int, gpus: tuple[int, ...]) -> tuple[int, ...] | None:
    at = {int(index): column for column, index in enumerate(ground.columns.gpu_index[row]) if index >= 0}
    return tuple(at[gpu] for gpu in gpus) if all(gpu in at for gpu in gpus) else None


def _is_source(ground: Ground, at: int, told: PlanStep) -> bool:
    return ground.columns.names[ground.pieces[at].row] == told.source


def _allowed(ground: Ground, steps: list[Step]) -> bool:
    """Whether access and today's budgets bear the steps."""
    mark = ground.mark()
    try:
        for step in steps:
            if isinstance(step, Moved):
                if not ground.may_move(step.piece):
                    return False
                ask = ground.pieces[step.piece].ask
                ground.move(step.piece, step.row, step.devices)
            else:
                ask = ground.queue.asks[step.which]
                if ground.queue.supply[step.which] <= 0:
                    return False
                ground.start((step.which, step.devices), step.row)
            devices = ground.access.devices(ask)[step.row]
            if not ground.access.rows(ask)[step.row] or not all(devices[device] for device in step.devices):
                return False
        return True
    finally:
        ground.restore(mark)
