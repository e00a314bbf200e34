"""Which cards may take a request: models, GPU memory, precision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpuwatch.fit.blocking import Test
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import BoolArray, Columns, IntArray
from gpuwatch.fit.gpu_memory import UNKNOWN_MEMORY, computes_in, device_memory, last_choice, preference
from gpuwatch.model.catalogue import card
from gpuwatch.model.cluster import UNKNOWN_MODEL
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.placement import PlacementRequest, Precision
from gpuwatch.model.units import gib
from gpuwatch.placement.what_if.need import light_inference, need_of

PRECISION = "precision_unsupported"
MEMORY_LACKING = "gpu_memory_lacking"
MEMORY_UNKNOWN = "gpu_memory_unknown"

_FIRST, _LAST = 0, 2**20  # places among the choices


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is left of a shape's accepted models, and, where a model has devices of both sorts, which devices."""

    shape: DemandShape
    devices: BoolArray | None = None  # (N, W); None: the models say it all
    none: bool = False  # no card here may take it


class Cards:
    """The cards of a booking, by what a request may ask of them."""

    def __init__(self, booking: Booking, columns: Columns) -> None:
        self._booking = booking
        self._columns = columns
        self._kinds: tuple[str | None, ...] = (*columns.models, None)  # code -1 is the last

    def accepted(self, request: PlacementRequest) -> Accepted:
        """The shape of one member, narrowed to what may take it."""
        need, shape = need_of(request), request.shape
        if need is None:
            return Accepted(shape)
        fine, poor = self._verdicts(need, request)
        asked = self._asked(shape)
        if not (fine & asked).any():
            return Accepted(shape, none=True)
        names = tuple(name for name, ok in zip(self._kinds, fine & asked, strict=True) if ok and name is not None)
        unnamed = bool((fine & asked)[-1])  # devices of no known model cannot be called by name
        narrowed = shape if unnamed else replace(shape, gpu_models=names)
        if unnamed or (fine & poor & asked).any():
            return Accepted(narrowed, devices=self._fine_devices(need, request))
        return Accepted(narrowed)

    def tests(self, request: PlacementRequest) -> list[Test]:
        """Causes that lie with the cards, for blocking.charged()."""
        need = need_of(request)
        if need is None:
            return []
        accepted = self._columns.accepted(request.shape.gpu_models)
        precise = accepted & self._precise(request)[self._columns.model]
        enough = precise & (self._memory >= need)
        perhaps = precise & (self._memory == UNKNOWN_MEMORY)
        # Where the node is too small whatever its cards, those it has must do, so that this is not blamed on them.
        wanted = np.minimum(accepted.sum(axis=1), request.shape.gpus)
        found = enough.sum(axis=1)
        return [
            (PRECISION, precise.sum(axis=1) < wanted),
            (MEMORY_UNKNOWN, (found < wanted) & (found + perhaps.sum(axis=1) >= wanted)),
            (MEMORY_LACKING, found < wanted),
        ]

    def excluded(self, request: PlacementRequest) -> dict[str, str]:
        """Card of this cluster that the request's models accept -> why it is not taken after all."""
        need = need_of(request)
        if need is None:
            return {}
        fine, _ = self._verdicts(need, request)
        barred = self._present & self._asked(request.shape) & ~fine
        return {self._kinds[at] or UNKNOWN_MODEL: self._why(int(at), need, request) for at in np.flatnonzero(barred)}

    def _why(self, at: int, need: int, request: PlacementRequest) -> str:
        if request.model is not None and not self._precise(request)[at]:
            return _not_in(self._kinds[at], request.model.precision)
        if self._most[at] == UNKNOWN_MEMORY:
            return "its memory is unknown"
        return f"has {gib(int(self._most[at]))}, {gib(need)} needed"

    def names(self, accepted: Accepted) -> tuple[str, ...]:
        """The cards of this cluster that `accepted` leaves."""
        asked = self._asked(accepted.shape)
        if accepted.none:
            return ()
        return tuple(
            name or UNKNOWN_MODEL
            for name, ok, here in zip(self._kinds, asked, self._present, strict=True)
            if ok and here and (accepted.devices is None or self._some(accepted.devices, name))
        )

    def places(self, request: PlacementRequest) -> IntArray | None:
        """(models + 1,) the place of each card among the choices, lowest first; None when no memory is asked for."""
        need = need_of(request)
        if need is None:
            return None
        groups = preference(need, light_inference(request))
        order = sorted({int(each) for each in self._most})
        place = np.empty(len(self._kinds), dtype=np.int64)
        for at, name in enumerate(self._kinds):
            group = next((rank for rank, names in enumerate(groups) if name in names), None)
            if group is not None:
                place[at] = _FIRST + group
            elif name in last_choice():
                place[at] = _LAST
            else:  # the smallest that suffices: a large card is worth more to those that need it
                place[at] = len(groups) + order.index(int(self._most[at]))
        return place

    def _verdicts(self, need: int, request: PlacementRequest) -> tuple[BoolArray, BoolArray]:
        """(models + 1,) cards of which some device will do, and of which some device will not."""
        precise = self._precise(request)
        return precise & (self._most >= need) & self._present, ~precise | (self._least < need)

    def _fine_devices(self, need: int, request: PlacementRequest) -> BoolArray:
        return np.asarray((self._memory >= need) & self._precise(request)[self._columns.model], dtype=np.bool_)

    def _precise(self, request: PlacementRequest) -> BoolArray:
        if request.model is None:
            return np.ones(len(self._kinds), dtype=np.bool_)
        return np.array([bool(computes_in(name, request.model.precision)) for name in self._kinds], dtype=np.bool_)

    def _asked(self, shape: DemandShape) -> BoolArray:
        return np.array([not shape.gpu_models or name in shape.gpu_models for name in self._kinds], dtype=np.bool_)

    def _some(self, devices: BoolArray, name: str | None) -> bool:
        code = -1 if name is None else self._columns.models.index(name)
        return bool((devices & self._columns.usable & (self._columns.model == code)).any())

    @cached_property
    def _memory(self) -> IntArray:
        return device_memory(self._booking, self._columns.left.shape[1])

    @cached_property
    def _present(self) -> BoolArray:
        found = np.zeros(len(self._kinds), dtype=np.bool_)
        found[self._columns.model[self._columns.usable]] = True
        return found

    @cached_property
    def _most(self) -> IntArray:
        most = np.zeros(len(self._kinds), dtype=np.int64)
        np.maximum.at(most, self._columns.model[self._columns.usable], self._memory[self._columns.usable])
        return most

    @cached_property
    def _least(self) -> IntArray:
        least = np.full(len(self._kinds), np.iinfo(np.int64).max)
        np.minimum.at(least, self._columns.model[self._columns.usable], self._memory[self._columns.usable])
        return least


def _not_in(name: str | None, precision: Precision) -> str:
    found = card(name)
    told = f"of the {found.generation} generation, which does not compute in" if found else "not known to compute in"
    return f"{told} {precision}"
