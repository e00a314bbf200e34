"""A what-if request against a cluster: is it sound, does it fit, and where may its members go?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.errors import InputError
from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import BoolArray, Columns, IntArray, columns_of
from gpuwatch.fit.fleet_fit import members_that_fit
from gpuwatch.model.catalogue import card
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.units import MILLI

MAX_MEMBERS = 100_000
MAX_TOP = 100


@dataclass(frozen=True, slots=True)
class Question:
    """The free capacity and the NVLink domains that a request is asked against."""

    columns: Columns
    domain: IntArray  # (N,) nodes with equal numbers share one NVLink domain
    nvlink: BoolArray  # (N,) False where every device is of a card that is known to have no NVLink

    def rows(self, request: PlacementRequest) -> BoolArray:
        """(N,) nodes where one member fits and, in one NVLink domain, all the others too."""
        room = members_that_fit(self.columns, request.shape)
        fits: BoolArray = room > 0
        if not wants_domain(request):
            return fits & (int(room.sum()) >= request.members)
        room = np.where(self.nvlink, room, 0)
        per_domain = np.bincount(self.domain, weights=room.astype(np.float64), minlength=1)
        return fits & self.nvlink & (per_domain[self.domain] >= request.members)

    def fitting_nodes(self, request: PlacementRequest) -> int:
        """Nodes that could take part in a placement; 0 when the request does not fit."""
        return int(self.rows(request).sum())

    def fits_by_sum(self, request: PlacementRequest) -> bool:
        """Whether the devices (or MIG instances), CPU and memory free in all would do, wherever they lie."""
        shape, columns = request.shape, self.columns
        if shape.gpus == 0:
            return False
        if shape.mig_profile:
            free_devices = int(columns.free_instances(shape.mig_profile, shape.gpu_models).sum())
            asked = shape.gpus
        else:
            free_devices, asked = int((columns.left * columns.accepted(shape.gpu_models)).sum()), shape.milligpu
        return all(
            free >= request.members * want
            for free, want in (
                (free_devices, asked),
                (int(columns.cpu_free[columns.open].sum()), shape.cpu_millicores),
                (int(columns.memory_free[columns.open].sum()), shape.memory_bytes),
            )
        )


def question_of(booking: Booking) -> Question:
    """The question's fixed part, from a booking."""
    nodes = [booked.node for booked in booking.nodes.values()]
    # A node without a named domain is its own; the kinds are kept apart so that a domain may be called like a node.
    keys = [("domain", n.nvlink_domain) if n.nvlink_domain else ("node", n.name) for n in nodes]
    number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    cards = [[card(gpu.model) for gpu in node.gpus] for node in nodes]
    # An unknown card may have NVLink: only a known lack refuses.
    without = [bool(found) and all(c is not None and c.nvlink_version is None for c in found) for found in cards]
    return Question(
        columns=columns_of(booking),
        domain=np.array([number[key] for key in keys], dtype=np.int64),
        nvlink=~np.array(without, dtype=np.bool_),
    )


def wants_domain(request: PlacementRequest) -> bool:
    """Whether the NVLink condition binds: a single device is in one domain anyway."""
    return request.same_nvlink_domain and request.members * request.shape.gpus > 1


def check_request(request: PlacementRequest) -> None:
    """Raises InputError for a request that no cluster could answer."""
    shape = request.shape
    shares = range(MILLI, MILLI + 1) if shape.gpus != 1 or shape.mig_profile else range(1, MILLI + 1)
    faults = (
        (not 1 <= request.members <= MAX_MEMBERS, f"members is {request.members}, outside 1..{MAX_MEMBERS}"),
        (not 1 <= request.top <= MAX_TOP, f"top is {request.top}, outside 1..{MAX_TOP}"),
        (shape.gpus < 0, f"gpus is {shape.gpus}, less than 0"),
        (shape.cpu_millicores < 0, f"cpu is {shape.cpu_millicores} millicores, less than 0"),
        (shape.memory_bytes < 0, f"memory is {shape.memory_bytes} bytes, less than 0"),
        (not shape.gpus and bool(shape.mig_profile), f"0 instances of {shape.mig_profile} are asked for"),
        (not (shape.gpus or shape.cpu_millicores or shape.memory_bytes), "nothing is asked for"),
        (
            shape.gpus > 0 and shape.milligpu_per_gpu not in shares,
            f"{shape.milligpu_per_gpu} thousandths of each of {shape.gpus} device(s): only a single device is shared, "
            f"and then 1..{MILLI}; several devices and MIG instances are whole ({MILLI})",
        ),
    )
    for wrong, what in faults:
        if wrong:
            raise InputError(f"this placement request cannot be answered: {what}", todo="correct the request")
