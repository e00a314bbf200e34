"""A what-if request against a cluster: does it fit, and where may its members go?"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np

from gpuwatch.fit.blocking import Blocking
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import BoolArray, IntArray, columns_of
from gpuwatch.fragmentation.report import table_of
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.placement.what_if.cards import Accepted, Cards
from gpuwatch.placement.what_if.frozen import Frozen
from gpuwatch.placement.what_if.generations import Generations
from gpuwatch.placement.what_if.need import need_of
from gpuwatch.placement.what_if.repartition import Repartition
from gpuwatch.placement.what_if.request import wants_domain

_KEPT_VIEWS = 4  # views that leave out devices within a model; rare, and each as large as the cluster


@dataclass(frozen=True, slots=True)
class Field:
    """One way to place a request: the shape narrowed to cards that go together, and the nodes where members may go.

    Every node of `rows` takes one member and can be joined by enough others for all. domain: numbers that all members
    must have in common; None where they need not.
    """

    frozen: Frozen
    shape: DemandShape
    rows: BoolArray  # (N,)
    domain: IntArray | None  # (N,)


class Question:
    """The free capacity, the cards and the NVLink domains that requests are asked against."""

    def __init__(self, booking: Booking, mix: DemandMix) -> None:
        self.booking = booking
        self.columns = columns_of(booking)
        self.frozen = Frozen(self.columns, table_of(self.columns, mix))
        self.cards = Cards(booking, self.columns)
        self.blocking = Blocking(booking, self.columns)
        self.domain = _domains(booking)  # (N,) nodes with equal numbers share one NVLink domain
        self.generations = Generations(self.columns)
        self.repartition = Repartition(booking, self.columns)
        self._views: OrderedDict[tuple[object, ...], Frozen] = OrderedDict()

    def fields(self, request: PlacementRequest) -> list[Field]:
        """Every way to place the request that has room for it; [] when it does not fit.

        In one NVLink domain all devices are of one generation, so that each generation is a way of its own.
        """
        frozen, accepted = self.read(request)
        if accepted.none:
            return []
        if not wants_domain(request):
            room = frozen.capacity.members(accepted.shape)
            enough = int(room.sum()) >= request.members
            return [Field(frozen, accepted.shape, room > 0, None)] if enough else []
        found = []
        for shape, room in self.by_generation(frozen, accepted):
            rows = (room > 0) & (self.per_domain(room) >= request.members)
            if rows.any():
                found.append(Field(frozen, shape, rows, self.domain))
        return found

    def read(self, request: PlacementRequest) -> tuple[Frozen, Accepted]:
        """What the request may take, and the view in which it is there."""
        accepted = self.cards.accepted(request)
        if accepted.devices is None:
            return self.frozen, accepted
        key = (need_of(request), request.model and request.model.precision)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = Frozen(self.columns, self.frozen.table, accepted.devices)
            while len(self._views) > _KEPT_VIEWS:
                self._views.popitem(last=False)
        return found, accepted

    def by_generation(self, frozen: Frozen, accepted: Accepted) -> list[tuple[DemandShape, IntArray]]:
        """(shape of one generation alone, (N,) members that fit) for each generation that NVLink can join."""
        asked, out = accepted.shape.gpu_models, []
        for names in self.generations.joined.values():
            if None in names:  # devices of no known model: joined with each other only, where there are no others
                if not asked:
                    room = frozen.capacity.members(accepted.shape)
                    out.append((accepted.shape, np.where(self.generations.nameless, room, 0)))
                continue
            models = tuple(name for name in names if name is not None and (not asked or name in asked))
            if models:
                shape = replace(accepted.shape, gpu_models=models)
                out.append((shape, frozen.capacity.members(shape)))
        return out

    def room_of(self, frozen: Frozen, shape: DemandShape, models: tuple[str, ...]) -> IntArray:
        """(N,) members that fit on devices of `models`."""
        return frozen.capacity.members(replace(shape, gpu_models=models))

    def per_domain(self, room: IntArray) -> IntArray:
        """(N,) `room` (N,) of the whole domain that each node is in."""
        total = np.bincount(self.domain, weights=room.astype(np.float64), minlength=1)
        return total[self.domain].astype(np.int64)

    def fitting_nodes(self, request: PlacementRequest) -> int:
        """Nodes that could take part in a placement; 0 when the request does not fit."""
        fields = self.fields(request)
        return int(np.logical_or.reduce([field.rows for field in fields]).sum()) if fields else 0

    def fits_by_sum(self, request: PlacementRequest) -> bool:
        """Whether the devices (or MIG instances), CPU and memory free in all would do, wherever they lie."""
        frozen, accepted = self.read(request)
        shape, columns = accepted.shape, self.columns
        if shape.gpus == 0 or accepted.none:
            return False
        if shape.mig_profile:
            free_devices = int(columns.free_instances(shape.mig_profile, shape.gpu_models).sum())
            asked = shape.gpus
        else:
            free_devices, asked = frozen.capacity.free_milligpu(shape.gpu_models), shape.milligpu
        return all(
            free >= request.members * want
            for free, want in (
                (free_devices, asked),
                (int(columns.cpu_free[columns.open].sum()), shape.cpu_millicores),
                (int(columns.memory_free[columns.open].sum()), shape.memory_bytes),
            )
        )


def _domains(booking: Booking) -> IntArray:
    nodes = [booked.node for booked in booking.nodes.values()]
    # A node without a named domain is its own; the kinds are kept apart so that a domain may be called like a node.
    keys = [("domain", n.nvlink_domain) if n.nvlink_domain else ("node", n.name) for n in nodes]
    number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.int64)
