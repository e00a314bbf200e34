"""What if this were asked for? Ranked placements with the index before and after, or why no node can take it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import IntArray
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import (
    Assignment,
    GpuCountOption,
    GpuMemoryNeed,
    PlacementAdvice,
    PlacementChoice,
    PlacementRequest,
)
from gpuwatch.placement.placer import Spot
from gpuwatch.placement.what_if.blockers import blockers
from gpuwatch.placement.what_if.drafts import Draft, drafts
from gpuwatch.placement.what_if.generations import generation
from gpuwatch.placement.what_if.nearest_fix import nearest_fix
from gpuwatch.placement.what_if.need import asked_bytes, counts_to_try, memory_need, need_of
from gpuwatch.placement.what_if.question import Field, Question
from gpuwatch.placement.what_if.request import check_request
from gpuwatch.placement.what_if.standing import After, Standing


class WhatIf:
    """Answers what-ifs about one booking, and keeps what no request changes. Safe to ask from several threads."""

    def __init__(self, booking: Booking, mix: DemandMix) -> None:
        self._mix = mix
        self._question = Question(booking, mix)

    def answer(self, request: PlacementRequest, evaluation_id: str) -> PlacementAdvice:
        """Advice for the whole request: all members or none.

        Raises InputError for a request that makes no sense, SettingsError for an unknown policy. A MIG request fits
        where created instances are free; what repartitioning would give is told in the blockers and the nearest fix.
        """
        check_request(request)
        question = self._question
        question.frozen.policy(request.policy)  # an unknown one is refused even where nothing fits
        asked, options = self._settled(request)
        fields = question.fields(asked)
        return PlacementAdvice(
            evaluation_id=evaluation_id,
            policy=request.policy,
            feasible=bool(fields),
            choices=self._choices(fields, asked),
            blockers=blockers(question, fields, asked),
            fits_by_sum_not_by_shape=not fields and question.fits_by_sum(asked),
            nearest_fix=None if fields else nearest_fix(question, asked),
            gpu_memory=self._memory(asked, options),
        )

    @cached_property
    def _standing(self) -> Standing:
        return Standing(self._question.frozen, self._mix)

    def _settled(self, request: PlacementRequest) -> tuple[PlacementRequest, tuple[GpuCountOption, ...]]:
        """The request with its number of GPUs chosen, and what each number would mean.

        The fewest that fit; where none does, the fewest of which some card here has the memory, else the most.
        """
        tried = counts_to_try(request)
        if len(tried) == 1:
            return request, ()
        options = tuple(self._option(each) for each in tried)
        for good in ([o.nodes > 0 for o in options], [bool(o.gpu_models) for o in options]):
            if any(good):
                return tried[good.index(True)], options
        return tried[-1], options

    def _option(self, request: PlacementRequest) -> GpuCountOption:
        _, accepted = self._question.read(request)
        return GpuCountOption(
            gpus=request.shape.gpus,
            gpu_memory_bytes=asked_bytes(request) or 0,
            gpu_models=self._question.cards.names(accepted),
            nodes=self._question.fitting_nodes(request),
        )

    def _choices(self, fields: list[Field], request: PlacementRequest) -> tuple[PlacementChoice, ...]:
        found: list[Draft] = []
        for field in fields:
            found += drafts(field, request, self._places(field, request))
        found = sorted(found, key=lambda draft: draft.key)[: request.top]
        after = self._standing.after([draft.spots for draft in found])
        return tuple(
            self._choice(draft.spots, left, rank + 1)
            for rank, (draft, left) in enumerate(zip(found, after, strict=True))
        )

    def _places(self, field: Field, request: PlacementRequest) -> IntArray | None:
        """(N,) the best place among the choices that a card of the node has; None: no memory is asked for."""
        places = self._question.cards.places(request)
        if places is None:
            return None
        columns = field.frozen.columns
        mine = np.where(columns.accepted(field.shape.gpu_models), places[columns.model], np.iinfo(np.int64).max)
        best: IntArray = mine.min(axis=1)
        return best

    def _choice(self, spots: list[Spot], after: After, rank: int) -> PlacementChoice:
        columns = self._question.columns
        models = {int(columns.model[spot.row, device]) for spot in spots for device in spot.devices}
        generations = {generation(columns.models[code] if code >= 0 else None) for code in models}
        return PlacementChoice(
            rank=rank,
            assignments=tuple(self._assignment(spot) for spot in spots),
            fragmentation_before=self._standing.scope.fragmentation_index,
            fragmentation_after=after.fragmentation_index,
            stranded_delta_milligpu=after.stranded_delta_milligpu,
            blocked_shapes=after.blocked_shapes,
            mixed_generations=tuple(sorted(generations)) if len(generations) > 1 else (),
        )

    def _assignment(self, spot: Spot) -> Assignment:
        columns = self._question.columns
        codes = {int(columns.model[spot.row, device]) for device in spot.devices}
        code = codes.pop() if len(codes) == 1 else -1
        return Assignment(
            node=columns.names[spot.row],
            pool=columns.pools[columns.pool[spot.row]],
            gpu_model=columns.models[code] if code >= 0 else None,
            gpus=tuple(int(columns.gpu_index[spot.row, device]) for device in spot.devices),
        )

    def _memory(self, request: PlacementRequest, options: tuple[GpuCountOption, ...]) -> GpuMemoryNeed | None:
        if need_of(request) is None:
            return None
        return memory_need(request, self._question.cards.excluded(request), options)
