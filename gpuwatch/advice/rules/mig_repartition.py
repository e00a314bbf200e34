"""mig_repartition: jobs wait for MIG slices that nobody has cut, though idle slices or free devices stand there.

See docs/rules/mig_repartition.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar

from gpuwatch.advice.commands import is_slurm
from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.mig_steps import steps
from gpuwatch.advice.mig_worth import Part, confidence, evidence, facts_of, gpus_worth, members, told_counts
from gpuwatch.advice.pricing import recoverable, severity
from gpuwatch.advice.rule import RULES, Outcome, recommendation_id
from gpuwatch.fit.feasible import Room, room
from gpuwatch.model.evaluation import Abstention, Recommendation, Risk, Subject
from gpuwatch.model.jobs import Job
from gpuwatch.model.mig import AskAnswer, DeviceLayout, MigPlan
from gpuwatch.placement.mig.after import node_after
from gpuwatch.placement.mig.asks import TRAINING, joined
from gpuwatch.placement.mig.devices import Limits, devices_of
from gpuwatch.placement.mig.exact import QUICK
from gpuwatch.placement.mig.plan import plan_layouts

_MOST_CHECKED = 40  # devices of one pool that are looked at one by one for whether they are needed


class MigRepartition:
    """Cuts idle slices and free devices anew for the jobs that wait for a profile."""

    id = "mig_repartition"
    title = "Jobs wait for MIG slices that could be cut from idle slices or free GPUs"
    reads: ClassVar[dict[str, str]] = {
        "idle_peak_ratio": "an instance without a holder that was busier than this is not deleted",
    }
    data: tuple[str, ...] = ("which job holds which instance", "waiting jobs and the profiles they ask for")

    def run(self, context: AdviceContext) -> Outcome:
        """One joint plan for all that wait, told pool by pool; who would not start by it is told with the reason."""
        waiting = list(_waiting(context))
        if not waiting:
            return Outcome()
        silent = next((source.name for source in context.snapshot.sources if not source.ok), None)
        if silent is not None:
            return Outcome(
                abstentions=tuple(_abstains(job, "source_silent", f"{silent} did not answer") for job, _ in waiting)
            )
        kept_off = [job for job, _ in waiting if job.kind == TRAINING]
        asks = joined((job, pool, members(job)) for job, pool in waiting if job.kind != TRAINING)
        limits = Limits(idle_peak_ratio=context.settings.idle_peak_ratio)
        plan = plan_layouts(asks, *devices_of(context.booking, limits), effort=QUICK)
        found = [advice for part in _parts(plan) if (advice := _advice(part, plan, context)) is not None]
        helped = {job for advice in found for job in advice.unlocks}
        passed = [_abstains(job, "training", "training is kept off MIG") for job in kept_off]
        passed += [_why_not(answer, job) for answer in plan.answers for job in answer.ask.jobs if job not in helped]
        return Outcome(tuple(found), tuple(passed))


def _waiting(context: AdviceContext) -> Iterator[tuple[Job, str]]:
    """Stuck jobs that ask for a profile, with the pool that they ask for."""
    jobs = {job.id: job for job in context.snapshot.jobs}
    for (pool, shape, _), ids in context.stuck.items():
        if shape.mig_profile:
            yield from ((jobs[name], pool) for name in ids)


def _parts(plan: MigPlan) -> list[Part]:
    pools: dict[str, list[DeviceLayout]] = defaultdict(list)
    for layout in plan.devices:
        if layout.create:
            pools[layout.pool].append(layout)
    return [Part(pool, tuple(layouts)) for pool, layouts in sorted(pools.items())]


def _advice(part: Part, plan: MigPlan, context: AdviceContext) -> Recommendation | None:
    mine = {job for answer in plan.answers for job in answer.ask.jobs}
    part, unlocks = _needed(part, context, mine)
    if not unlocks:
        return None
    jobs = {job.id: job for job in context.snapshot.jobs if job.id in unlocks}
    worth = recoverable(gpus_worth(part, jobs, context), context.settings, no_watts="repartition_saves_no_energy")
    models = {layout.gpu_model for layout in part.layouts}
    nodes = tuple(dict.fromkeys(layout.node for layout in part.layouts))
    subject = Subject(
        kind="pool",
        name=part.pool,
        pool=part.pool,
        node=nodes[0] if len(nodes) == 1 else None,
        gpu_model=next(iter(models)) if len(models) == 1 else None,
        gpus=tuple(layout.gpu_index for layout in part.layouts) if len(nodes) == 1 else (),
    )
    deleted = sum(len(layout.delete) for layout in part.layouts)
    return Recommendation(
        id=recommendation_id(MigRepartition.id, subject),
        rule=MigRepartition.id,
        severity=severity(worth.gpu_hours_per_week, unlocks=len(unlocks)),
        confidence=confidence(part, context),
        subject=subject,
        summary=(
            f"{part.pool}: cutting {len(part.layouts)} GPU(s) on {len(nodes)} node(s) anew lets {len(unlocks)} waiting "
            f"job(s) start: {told_counts(part)}"
        ),
        recoverable=worth,
        risk=Risk(
            disruption=f"no running job is touched; {deleted} idle instance(s) go, and {len(nodes)} node(s) take no "
            "new work meanwhile",
            work_lost_seconds=0,
            basis="only instances that nobody holds are deleted",
        ),
        facts=facts_of(part, plan),
        commands=steps(part.layouts, slurm=all(is_slurm(job) for job in jobs.values())),
        evidence=tuple(evidence(part, context)),
        unlocks=unlocks,
        valid_until=context.snapshot.taken_at + timedelta(seconds=context.settings.recommendation_valid_seconds),
    )


def _needed(part: Part, context: AdviceContext, mine: set[str]) -> tuple[Part, tuple[str, ...]]:
    """The part without the devices that let nobody start, as where CPU lacks beside them; and who starts."""

    def starts(layouts: tuple[DeviceLayout, ...]) -> tuple[str, ...]:
        return tuple(job for job in context.unlocked(_rooms(Part(part.pool, layouts), context)) if job in mine)

    layouts, unlocks = part.layouts, starts(part.layouts)
    for layout in part.layouts if unlocks and len(part.layouts) <= _MOST_CHECKED else ():
        fewer = tuple(each for each in layouts if each is not layout)
        if fewer and starts(fewer) == unlocks:
            layouts = fewer
    return Part(part.pool, layouts), unlocks


def _rooms(part: Part, context: AdviceContext) -> list[Room]:
    """The room on the pool's changed nodes after the plan."""
    nodes = dict.fromkeys(layout.node for layout in part.layouts)
    return [room(node_after(context.booking.nodes[name], part.layouts)) for name in nodes]


def _abstains(job: Job | str, reason: str, detail: str) -> Abstention:
    name = job if isinstance(job, str) else job.id
    return Abstention(rule=MigRepartition.id, subject=name, reason=reason, detail=detail)


def _why_not(answer: AskAnswer, job: str) -> Abstention:
    if answer.unmet:
        blocked = f": {'; '.join(answer.blocked_by)}" if answer.blocked_by else ""
        code = "held_instances_block" if answer.blocked_by else "no_room_to_cut"
        return _abstains(job, code, f"{answer.ask.profile}: {answer.reason}{blocked}")
    if answer.ready and not answer.created:
        detail = f"{answer.ask.profile} stands free; CPU, memory, or enough of them on one node are what lacks"
        return _abstains(job, "slices_stand_free", detail)
    return _abstains(
        job, "would_not_start", f"{answer.ask.profile} could be cut; CPU, memory, or one node for all lacks"
    )


RULES.register(MigRepartition.id)(MigRepartition())
