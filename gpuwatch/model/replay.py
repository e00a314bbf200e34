"""What came out of replaying a job trace: one run of one policy on one seed, and its parts."""

from __future__ import annotations

from gpuwatch.model.values import value

# Sizes that admission is told by: what one member asks for, in whole devices; "share" is part of one device.
CPU_ONLY = "cpu"
SHARE = "share"


@value
class ReplayPoint:
    """Mean over the arrivals whose arrived demand rounds to `arrived_percent` of the GPU capacity."""

    arrived_percent: int
    allocation_ratio: float  # allocated / capacity
    fragment_ratio: float | None  # the published F / idle, CPU-only shapes included; None when nothing is idle
    fragment_of_capacity_ratio: float  # F / capacity


@value
class SizeAdmission:
    """Jobs of one size that came and that were placed at once."""

    size: str  # cpu, share, or the number of whole devices: 1, 2, 4, 8 ...
    arrived: int  # while no more than 100% of the capacity had arrived
    admitted: int
    arrived_in_all: int  # over the whole stream
    admitted_in_all: int


@value
class ReplayRun:
    """One run of the published arrival protocol: nothing leaves, nothing is retried."""

    trace: str  # the format's id, for example openb
    workload: str
    policy: str
    seed: int
    inflate_ratio: float  # the stream asks for this multiple of the GPU capacity
    arrivals: int
    allocation_ratio_at_100: float | None  # at the curve's point 100; None when the stream ends before it
    allocation_ratio_at_130: float | None
    curve: tuple[ReplayPoint, ...]
    admission: tuple[SizeAdmission, ...]
    seconds: float  # of this run alone, without reading the trace or compiling
