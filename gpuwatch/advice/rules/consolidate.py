"""consolidate: a lightly used node whose jobs all fit elsewhere, so that a whole node becomes free.

See docs/rules/consolidate.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

from gpuwatch.advice import commands
from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.moves import Move, Refusal, plan_moves
from gpuwatch.advice.pricing import recoverable, severity
from gpuwatch.advice.queries import instant, quoted
from gpuwatch.advice.risks import stop_risk, together
from gpuwatch.advice.rule import RULES, Outcome, recommendation_id
from gpuwatch.fit.booking import BookedNode, Booking, node_block_cause
from gpuwatch.fit.feasible import Room, room
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.evaluation import (
    Abstention,
    Command,
    Confidence,
    Evidence,
    FragmentationReport,
    Recommendation,
    Scalar,
    Subject,
)
from gpuwatch.model.units import HOUR_SECONDS, MILLI

MAX_TRIED = 60  # candidates tried in one evaluation, cheapest first: bounds the time on fleets full of scraps
MAX_PLANS = 10  # more emptied nodes than this at a time are no plan that a person would follow
_POD = "namespace,pod,uid,exported_namespace,exported_pod"  # whichever of them the scraper left
_CONFIDENCE = 0.8
_UNKNOWN_CAPACITY = 0.7  # factor when a target's CPU or memory is not known


class Consolidate:
    """Empties lightly used nodes onto used ones."""

    id = "consolidate"
    title = "A lightly used node can be emptied, so that a shape that is asked for fits more often"
    reads: ClassVar[dict[str, str]] = {
        "consolidate_min_free_ratio": "nodes freer than this are tried",
        "consolidate_max_moves": "more moves than this for one node are not proposed",
        "checkpoint_unknown_lost_seconds": "work at risk per moved job when no checkpoint is known",
    }
    data: tuple[str, ...] = ("which devices each job holds", "CPU and memory requests", "the demand mix")

    def run(self, context: AdviceContext) -> Outcome:
        """Tries the nodes with the least work at risk first; each plan counts on what those before it leave."""
        state = _State(context)
        found: list[Recommendation] = []
        passed: list[Abstention] = []
        for booked in state.candidates[:MAX_TRIED]:
            if len(found) >= MAX_PLANS:
                break
            if booked.node.name in state.receivers:
                continue  # it was just filled: emptying it again would only push jobs around
            result = _try(booked, state, context, order=len(found) + 1)
            if isinstance(result, Refusal):
                passed.append(
                    Abstention(rule=self.id, subject=booked.node.name, reason=result.reason, detail=result.detail)
                )
            else:
                found.append(result)
        return Outcome(tuple(found), tuple(passed))


@dataclass(slots=True)
class _State:
    """The cluster as the accepted plans leave it."""

    context: AdviceContext
    candidates: list[BookedNode] = field(init=False)
    rooms: dict[str, Room] = field(init=False)
    emptied: set[str] = field(default_factory=set)
    receivers: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)  # waiting jobs that an earlier plan lets start
    free_milligpu: int = field(init=False)
    stranded_milligpu: float = field(init=False)
    _order: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.rooms = dict(self.context.shapes.rooms)
        overall = fragmentation_report(self.context.booking, self.context.mix).overall
        self.free_milligpu, self.stranded_milligpu = overall.free_milligpu, overall.stranded_milligpu
        self.candidates = _candidates(self.context)
        lightest = {booked.node.name: at for at, booked in enumerate(self.candidates)}
        # Among equally full targets the one that would be emptied last goes first, so that filling and emptying agree.
        self._order = {name: -lightest.get(name, len(lightest)) for name in self.rooms}

    def targets(self, source: BookedNode) -> list[Room]:
        """Nodes of the same pool that take work, hold a job already, and are not to be emptied."""
        nodes = self.context.booking.nodes
        used = [
            place
            for name, place in self.rooms.items()
            if place.takes_work
            and place.node.pool == source.node.pool
            and name != source.node.name
            and name not in self.emptied
            and any(nodes[name].holds)
            and any(place.free_milligpu)
        ]
        return sorted(used, key=lambda place: self._order[place.node.name])

    def report(self, rooms: list[Room]) -> FragmentationReport:
        """Fragmentation of these nodes alone, as the rooms stand."""
        nodes = {place.node.name: _as_booked(place, self.context.booking) for place in rooms}
        return fragmentation_report(Booking(nodes=nodes), self.context.mix)

    @property
    def index(self) -> float | None:
        """The cluster's index after the plans so far."""
        return 100 * self.stranded_milligpu / self.free_milligpu if self.free_milligpu else None


def _as_booked(place: Room, booking: Booking) -> BookedNode:
    return replace(
        booking.nodes[place.node.name],
        left_milligpu=list(place.free_milligpu),
        cpu_free_millicores=place.cpu_free_millicores,
        memory_free_bytes=place.memory_free_bytes,
    )


def _candidates(context: AdviceContext) -> list[BookedNode]:
    """Nodes that take work, hold something and are freer than the bound; least GPU-hours at risk first."""
    bound = context.settings.consolidate_min_free_ratio
    light = []
    for booked in context.booking.nodes.values():
        usable = sum(booked.usable) * MILLI
        held = usable - sum(booked.free_milligpu)
        if node_block_cause(booked.node) is None and usable and held > 0 and (usable - held) / usable > bound:
            light.append((_at_risk(booked, context), held, booked.node.name, booked))
    return [booked for *_, booked in sorted(light, key=lambda row: row[:3])]


def _at_risk(booked: BookedNode, context: AdviceContext) -> float:
    """GPU-hours of work that would be lost if every hold on the node were ended now."""
    return sum(
        (stop_risk(hold.job, context, "").work_lost_seconds or 0) * hold.milligpu
        for holds in booked.holds
        for hold in holds
    ) / (MILLI * HOUR_SECONDS)


def _try(booked: BookedNode, state: _State, context: AdviceContext, order: int) -> Recommendation | Refusal:
    planned = plan_moves(booked, state.targets(booked), context.settings.consolidate_max_moves)
    if isinstance(planned, Refusal):
        return planned
    moves, filled = planned
    emptied = room(booked, frozenset(move.job.id for move in moves))
    after = [emptied, *filled]
    before = [state.rooms[place.node.name] for place in after]
    told_before, told_after = state.report(before), state.report(after)
    # Whoever leaves an unhealthy device takes a free one and gives none back: what is free may shrink.
    taken = told_before.overall.free_milligpu - told_after.overall.free_milligpu
    gain = told_before.overall.stranded_milligpu - told_after.overall.stranded_milligpu - taken
    fits_before = {fit.shape: fit.fits_now for fit in told_before.shapes if fit.shape.gpus}
    gained = {fit.shape: fit.fits_now - fits_before[fit.shape] for fit in told_after.shapes if fit.shape.gpus}
    helped = sorted(shape.label for shape, more in gained.items() if more > 0)
    already = {*context.unlocked(before, state.rooms.values()), *state.claimed}
    opened = context.unlocked(after, state.rooms.values())
    unlocks = tuple(job for job in opened if job not in already)
    if not (helped or unlocks):
        return Refusal("helps_no_shape", f"emptying {booked.node.name} lets no shape fit more often")
    if gain < 0:
        return Refusal("index_would_rise", f"emptying {booked.node.name} makes {-gain / MILLI:.3f} GPUs less usable")
    index_before = state.index
    state.free_milligpu -= taken
    state.stranded_milligpu -= gain + taken
    facts: dict[str, Scalar] = {
        "order": order,
        "moves": len(moves),
        "whole_gpus_freed_together": sum(free == MILLI for free in emptied.free_milligpu),
        "fragmentation_index_before": index_before,
        "fragmentation_index_after": state.index,
        "shapes_helped": ", ".join(helped),
        "shapes_fitting_less_often": ", ".join(sorted(shape.label for shape, more in gained.items() if more < 0)),
        **{f"move_{at}": _told(move) for at, move in enumerate(moves, 1)},
    }
    state.rooms.update({place.node.name: place for place in after})
    state.emptied.add(booked.node.name)
    state.receivers.update(place.node.name for place in filled)
    state.claimed.update(unlocks)
    return _advice(booked, moves, filled, gain, unlocks, facts, state)


def _told(move: Move) -> str:
    return f"{move.job.id}: {move.source} {list(move.source_gpus)} -> {move.target} {list(move.target_gpus)}"


def _advice(
    booked: BookedNode,
    moves: list[Move],
    filled: list[Room],
    gain: float,
    unlocks: tuple[str, ...],
    facts: dict[str, Scalar],
    state: _State,
) -> Recommendation:
    node, context = booked.node, state.context
    models = {gpu.model for gpu in node.gpus}
    model = next(iter(models)) if len(models) == 1 else None
    worth = recoverable({model: gain / MILLI}, context.settings, no_watts="moves_save_no_energy")
    unknown = any(place.cpu_free_millicores is None or place.memory_free_bytes is None for place in filled)
    subject = Subject(kind="node", name=node.name, node=node.name, pool=node.pool, gpu_model=model)
    risks = [stop_risk(move.job, context, "") for move in moves]
    disrupted = sum(
        (risk.work_lost_seconds or 0) / HOUR_SECONDS * move.job.shape.milligpu / MILLI
        for risk, move in zip(risks, moves, strict=True)
    )
    facts["gpu_hours_at_risk"] = round(disrupted, 2)
    weak = worth.gpu_hours_per_week < disrupted
    return Recommendation(
        id=recommendation_id(Consolidate.id, subject),
        rule=Consolidate.id,
        severity=severity(worth.gpu_hours_per_week, unlocks=len(unlocks), lower=int(weak)),
        confidence=Confidence(
            value=round(_CONFIDENCE * (_UNKNOWN_CAPACITY if unknown else 1), 2),
            basis="every move fits in order in the booking"
            + ("; CPU or memory of a target is unknown" if unknown else ""),
        ),
        subject=subject,
        summary=(
            f"{node.name}: {len(moves)} move(s) empty it, {facts['whole_gpus_freed_together']} GPUs free together; "
            + (f"{len(unlocks)} waiting job(s) could start" if unlocks else f"helps {facts['shapes_helped']}")
        ),
        recoverable=worth,
        risk=together(risks, f"ends {len(moves)} job(s) once; each starts again on another node"),
        facts=facts,
        commands=_commands(node.name, moves),
        evidence=_evidence(booked, moves, state),
        unlocks=unlocks,
        valid_until=context.snapshot.taken_at + timedelta(seconds=context.settings.recommendation_valid_seconds),
    )


def _commands(node: str, moves: list[Move]) -> tuple[Command, ...]:
    """Cordon, one move after the other, uncordon: work must not come back in between."""
    steps = [line for move in moves for line in commands.move(move.job, move.target)]
    if any(commands.is_slurm(move.job) for move in moves):
        return tuple(steps)
    return (commands.cordon(node), *steps, commands.uncordon(node))


def _evidence(booked: BookedNode, moves: list[Move], state: _State) -> tuple[Evidence, ...]:
    """The pods that hold devices of the node, from kube-state-metrics: each of them is moved.

    The index is computed, not measured: no query gives it again, and it stands in the facts.
    """
    at = instant(state.context.snapshot)
    requests = (
        f'{{__name__=~"kube_pod_container_resource_requests|kube_pod_init_container_resource_requests",'
        f'resource=~".*gpu.*|nvidia_com_mig_.*",node="{quoted(booked.node.name)}"}} @ {at} > 0'
    )
    alive = f'kube_pod_status_phase{{phase=~"Pending|Running|Unknown"}} @ {at} == 1'
    pods = f"count by ({_POD}) ({requests}) and on ({_POD}) ({alive})"
    return (Evidence(query=f"count({pods})", value=float(len(moves)), unit="pods"),)


RULES.register(Consolidate.id)(Consolidate())
