"""Makes the plan: survey, search, a word about the optimum, and what came out, measured by booking the end anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuwatch.fit.booking import Booking, book
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.plan import (
    Method,
    MoveCost,
    PlanLimits,
    PlanMeasure,
    RebalancePlan,
)
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.placement.rebalance.apply import apply_steps
from gpuwatch.placement.rebalance.done import peers_of
from gpuwatch.placement.rebalance.exact import exact_steps
from gpuwatch.placement.rebalance.ground import WAITING_WEIGHT, Ground, Moved, Step
from gpuwatch.placement.rebalance.measure import measure, shape_gains
from gpuwatch.placement.rebalance.previous import left_behind, steps_again
from gpuwatch.placement.rebalance.prune import pruned, replay
from gpuwatch.placement.rebalance.search import Search
from gpuwatch.placement.rebalance.survey import Survey, survey
from gpuwatch.placement.rebalance.tell import told_steps
from gpuwatch.placement.rebalance.world import job_before, node_before, touched_nodes

CLEARLY_WORSE_RATIO = 0.9  # a previous plan that still reaches this part of the new one's gain is kept


def plan_rebalance(
    snapshot: ClusterSnapshot,
    mix: DemandMix,
    limits: PlanLimits,
    *,
    costs: Mapping[str, MoveCost] | None = None,
    previous: RebalancePlan | None = None,
    evaluation_id: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> RebalancePlan:
    """A plan for `snapshot` under `limits`. Never raises on data.

    costs: what moving each job loses; a job that is not in it loses nothing. previous: kept while it still stands and
    is not clearly worse; no job goes back to a node that it left by it. progress(moves so far, moves allowed).
    """
    snapshot = _by_name(snapshot)
    if previous is not None and previous.cluster != snapshot.cluster:
        previous = None  # names there mean other things
    booking = book(snapshot)
    found = survey(snapshot, booking, mix, limits, costs or {}, left_behind(previous, snapshot.jobs))
    ground = found.ground
    start = ground.mark()
    allowed = ground.budget.moves

    def worth_it(gain: int, hours: float) -> bool:
        return gain / WAITING_WEIGHT / MILLI * limits.horizon_hours >= hours

    def tell(moves: int) -> None:
        if progress is not None:
            progress(moves, allowed)

    Search(ground, limits.least_gain_milligpu, worth_it, tell).run()
    steps = ground.steps
    ground.restore(start)
    steps = pruned(ground, steps, limits.least_gain_milligpu)
    method: Method = "local_search"
    best = exact_steps(ground, limits.least_gain_milligpu)
    sound = best.steps is not None and _sound(ground, best.steps, worth_it)
    if best.steps is not None and sound and _net(ground, best.steps, limits) > _net(ground, steps, limits):
        steps, method = best.steps, "exact"
    kept = steps_again(previous, found) if previous is not None else None
    if kept and _net(ground, kept, limits) >= CLEARLY_WORSE_RATIO * _net(ground, steps, limits):
        steps, method = kept, "previous"
    # The solver does not round as the measures do: where its end state can be reached, it is measured like the plan.
    optimum = best.value if best.steps is None else _net(ground, best.steps, limits)
    gap = None if optimum is None else _gap(optimum, _net(ground, steps, limits))
    return _plan(snapshot, booking, mix, found, steps, limits, method, gap, best.reason, evaluation_id)


def _by_name(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Sources list nodes and jobs in any order; equals fall by name, whatever it was."""
    nodes = sorted(snapshot.nodes, key=lambda node: node.name)
    return replace(snapshot, nodes=tuple(nodes), jobs=tuple(sorted(snapshot.jobs, key=lambda job: job.id)))


def _gap(best: float, reached: float) -> float:
    """The part of the best value that is missed; rounding of the solver is no miss."""
    return max(0.0, round((best - reached) / best, 6)) if best >= 1 else 0.0


def _net(ground: Ground, steps: Sequence[Step], limits: PlanLimits) -> int:
    """The value that `steps` add, every move charged with the least gain."""
    mark = ground.mark()
    before = ground.value()
    replay(ground, steps)
    added = ground.value() - before - limits.least_gain_milligpu * sum(isinstance(step, Moved) for step in steps)
    ground.restore(mark)
    return added


def _sound(ground: Ground, steps: Sequence[Step], worth_it: Callable[[int, float], bool]) -> bool:
    """Whether the moves as a whole are worth the work that they lose."""
    hours = sum(ground.pieces[step.piece].price for step in steps if isinstance(step, Moved))
    mark = ground.mark()
    before = ground.value()
    replay(ground, steps)
    gain = ground.value() - before
    ground.restore(mark)
    return worth_it(gain, hours)


def _plan(
    snapshot: ClusterSnapshot,
    booking: Booking,
    mix: DemandMix,
    found: Survey,
    steps: Sequence[Step],
    limits: PlanLimits,
    method: Method,
    gap: float | None,
    gap_reason: str | None,
    evaluation_id: str,
) -> RebalancePlan:
    told = told_steps(found, steps)
    end = apply_steps(snapshot, told)
    report, report_after = fragmentation_report(booking, mix), fragmentation_report(book(end), mix)
    before, after = measure(snapshot, report), measure(end, report_after)
    names = {step.job for step in told}
    nodes = touched_nodes(told)
    moved = {step.job for step in told if step.kind == "move"}
    peers = peers_of(snapshot.jobs, nodes, [found.jobs[name] for name in sorted(moved)])
    return RebalancePlan(
        evaluation_id=evaluation_id,
        cluster=snapshot.cluster,
        limits=limits,
        steps=told,
        reason=None if told else _why_nothing(snapshot, found, before),
        moves=sum(step.kind == "move" for step in told),
        starts=sum(step.kind == "start" for step in told),
        allowed_moves=found.ground.budget.moves,
        running_jobs=found.running_jobs,
        gpu_hours_lost=told[-1].gpu_hours_lost if told else 0.0,
        started_milligpu=after.allocated_milligpu - before.allocated_milligpu,
        usable_change_milligpu=after.usable_milligpu - before.usable_milligpu,
        before=before,
        after=after,
        shapes=shape_gains(report, report_after),
        method=method if told else "none",
        optimality_gap_ratio=gap,
        optimality_reason=gap_reason,
        refused=found.refused,
        nodes_before=tuple(node_before(booking.nodes[name]) for name in nodes),
        jobs_before=tuple(job_before(job, peers.get(job.id, ())) for job in snapshot.jobs if job.id in names),
    )


def _why_nothing(snapshot: ClusterSnapshot, found: Survey, before: PlanMeasure) -> str:
    if not any(node.gpus for node in snapshot.nodes):
        return "no_gpus"
    if not found.waiting and not found.ground.mix.weight.sum():
        return "no_demand"
    if not before.free_milligpu:
        return "nothing_free"
    if not found.ground.budget.moves:
        return "no_moves_allowed"
    return "no_move_gains_enough" if found.ground.pieces else "nothing_movable"
