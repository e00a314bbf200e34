"""What if this were asked for? Ranked placements with the index before and after, or why no node can take it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gpuwatch.fit.booking import Booking
from gpuwatch.fit.capacity import Capacity
from gpuwatch.fit.columns import BoolArray, Columns
from gpuwatch.fit.fleet_fit import blocking_causes
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.fragmentation.report import Stranded, shape_fits, table_of
from gpuwatch.model.evaluation import FragmentationScope
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import Assignment, PlacementAdvice, PlacementChoice, PlacementRequest
from gpuwatch.placement.nearest_fix import nearest_fix
from gpuwatch.placement.placer import Placer, Spot
from gpuwatch.placement.question import Question, check_request, question_of, wants_domain

NO_NVLINK = "no_nvlink"
NVLINK_DOMAIN = "nvlink_domain"

_TRIES_PER_CHOICE = 10  # starts tried for one choice before equal sets of nodes end the search


def place_what_if(booking: Booking, mix: DemandMix, request: PlacementRequest, evaluation_id: str) -> PlacementAdvice:
    """Advice for the whole request: all members or none.

    Raises InputError for a request that makes no sense, SettingsError for an unknown policy. A MIG request fits where
    created instances are free; repartitioning is not considered.
    """
    check_request(request)
    question = question_of(booking)
    table = table_of(question.columns, mix)
    placer = Placer(question.columns.copy(), table, request.policy)
    rows = question.rows(request)
    feasible = bool(rows.any())
    return PlacementAdvice(
        evaluation_id=evaluation_id,
        policy=request.policy,
        feasible=feasible,
        choices=_choices(booking, mix, question, placer, table, request, rows) if feasible else (),
        blockers=_blockers(booking, question, request, rows),
        fits_by_sum_not_by_shape=not feasible and question.fits_by_sum(request),
        nearest_fix=None if feasible else nearest_fix(question, request),
    )


def _choices(
    booking: Booking,
    mix: DemandMix,
    question: Question,
    placer: Placer,
    table: MixTable,
    request: PlacementRequest,
    rows: BoolArray,
) -> tuple[PlacementChoice, ...]:
    before = _Standing.of(question.columns, mix, table)
    choices: list[PlacementChoice] = []
    seen: set[tuple[int, ...]] = set()
    for start in placer.ranked(request.shape, rows)[: request.top * _TRIES_PER_CHOICE]:
        # Within one domain the members stay where the first goes; rows holds whole domains only.
        allowed = rows & (question.domain == question.domain[start.row]) if wants_domain(request) else rows
        spots = _placed(placer, start, request, allowed)
        nodes = tuple(sorted(spot.row for spot in spots))
        if spots and nodes not in seen:
            seen.add(nodes)
            after = _Standing.of(placer.columns, mix, table)
            choices.append(_choice(booking, question.columns, spots, before, after, rank=len(choices) + 1))
        for spot in reversed(spots):
            placer.undo(spot)
        if len(choices) == request.top:
            break
    return tuple(choices)


def _placed(placer: Placer, start: Spot, request: PlacementRequest, allowed: BoolArray) -> list[Spot]:
    """All members booked, the first on `start`; [] (and nothing booked) when the others find no room."""
    placer.take(start)
    others = placer.take_gang(request.shape, request.members - 1, allowed)
    if len(others) == request.members - 1:
        return [start, *others]
    placer.undo(start)
    return []


@dataclass(frozen=True, slots=True)
class _Standing:
    """The index and the fits of a state."""

    scope: FragmentationScope
    fits: dict[str, int]  # shape label -> members that could start

    @classmethod
    def of(cls, columns: Columns, mix: DemandMix, table: MixTable) -> _Standing:
        fits = {fit.shape.label: fit.fits_now for fit in shape_fits(Capacity(columns), mix, table)}
        return cls(Stranded.on(columns, table).overall(), fits)


def _choice(
    booking: Booking, columns: Columns, spots: list[Spot], before: _Standing, after: _Standing, rank: int
) -> PlacementChoice:
    return PlacementChoice(
        rank=rank,
        assignments=tuple(_assignment(booking, columns, spot) for spot in spots),
        fragmentation_before=before.scope.fragmentation_index,
        fragmentation_after=after.scope.fragmentation_index,
        stranded_delta_milligpu=after.scope.stranded_milligpu - before.scope.stranded_milligpu,
        blocked_shapes=tuple(label for label, count in before.fits.items() if count and not after.fits[label]),
    )


def _assignment(booking: Booking, columns: Columns, spot: Spot) -> Assignment:
    booked = booking.nodes[columns.names[spot.row]]
    indexes = [int(columns.gpu_index[spot.row, device]) for device in spot.devices]
    models = {gpu.model for gpu in booked.node.gpus if gpu.index in indexes}
    return Assignment(
        node=booked.node.name,
        pool=booked.node.pool,
        gpu_model=models.pop() if len(models) == 1 else None,
        gpus=tuple(indexes),
    )


def _blockers(booking: Booking, question: Question, request: PlacementRequest, rows: BoolArray) -> dict[str, int]:
    """Cause -> nodes where not even one member fits, or whose NVLink domain cannot hold all; most nodes first."""
    counts: Counter[str] = Counter()
    for row, cause in enumerate(blocking_causes(booking, question.columns, request.shape)):
        if cause is not None:
            counts[cause] += 1
        elif wants_domain(request) and not rows[row]:
            counts[NVLINK_DOMAIN if question.nvlink[row] else NO_NVLINK] += 1
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
