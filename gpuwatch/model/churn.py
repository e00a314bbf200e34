"""What came out of replaying a job trace with departures: one run of one policy on one seed, and its parts."""

from __future__ import annotations

from gpuwatch.model.values import value

GANG = "gang"  # the size of a job of several members, whatever each asks for


@value
class ChurnPoint:
    """Time-weighted means over one of the equal parts that the run is cut into."""

    time_seconds: float  # the end of the part, since the first arrival
    utilization_ratio: float  # allocated / capacity
    fragment_ratio: float | None  # the published F / idle, CPU-only shapes included; None when nothing was idle
    waiting_milligpu: float  # asked for by the jobs in the queue
    stuck_milligpu: float  # of these, what the idle devices could serve by their sum while no node can


@value
class ChurnSize:
    """Jobs of one size that arrived after the warm-up."""

    size: str  # cpu, share, the number of whole devices of a single member, or gang
    arrived: int
    started: int
    finished: int
    preempted: int  # of them, how many were sent away at least once
    still_waiting: int  # never started until the end; they count below with the wait so far
    wait_p50_seconds: float | None  # from arrival to first start; None when no such job arrived
    wait_p95_seconds: float | None
    wait_max_seconds: float | None


@value
class ChurnRun:
    """One run. "Steady" is what comes after the warm-up; jobs are counted over the whole run unless it says so."""

    trace: str  # the format's id, for example openb
    workload: str
    policy: str
    seed: int
    times: str  # drawn, durations or trace: where arrivals and durations come from
    jobs_without_time: int  # jobs of the list that tell no arrival or no duration
    jobs_left_out: int  # of these, without an arrival in a run that takes arrivals from the trace
    offered_load_ratio: float  # steady: what jobs would hold of the capacity if each started when it came
    span_seconds: float
    warm_up_seconds: float
    initial: int  # jobs that stand before the door when the run begins, so that it begins near its steady state
    arrived: int  # the initial ones included
    finished: int
    running: int  # at the end
    waiting: int  # at the end, preempted ones included
    never_started: int  # of those waiting
    refused: int  # jobs that not even the empty cluster could take
    utilization_ratio: float  # steady
    fragment_ratio: float | None  # steady; None when nothing was idle
    waiting_milligpu: float  # steady
    waiting_milligpu_at_end: int
    stuck_milligpu: float  # steady
    preempted_jobs: int  # steady: jobs that were sent away at least once
    preemptions: int  # steady
    lost_gpu_hours: float  # steady: work that they had done and have to do again
    curve: tuple[ChurnPoint, ...]
    sizes: tuple[ChurnSize, ...]
    seconds: float  # of the loop alone, without reading the trace or compiling
