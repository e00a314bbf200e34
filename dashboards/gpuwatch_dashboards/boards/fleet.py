"""gw-fleet: is any cluster in trouble, how much of it is used, and what would be worth doing."""

from __future__ import annotations

from gpuwatch_dashboards.boards import BOARDS
from gpuwatch_dashboards.boards._fleet_capacity import capacity, demand, fragmentation
from gpuwatch_dashboards.boards._fleet_devices import devices, utilization
from gpuwatch_dashboards.boards._fleet_top import advice, now, telemetry
from gpuwatch_dashboards.intent import Board
from gpuwatch_dashboards.thresholds import Thresholds


@BOARDS.register("gw-fleet")
def fleet(thresholds: Thresholds) -> Board:
    """The first screen of all: every cluster, no device names."""
    return Board(
        uid="gw-fleet",
        title="gpuwatch / Fleet",
        description=(
            "Every GPU cluster on one page: what is wrong now, how much is held and used, what the free capacity can"
            " take, what is coming and what is worth doing. Counts come from the gpuwatch daemon, device readings from"
            " the exporters through the gpuwatch recording rules."
        ),
        sections=(
            now(),
            capacity(),
            utilization(thresholds),
            fragmentation(thresholds),
            demand(),
            devices(thresholds),
            advice(),
            telemetry(thresholds),
        ),
    )
