"""A public trace as a world: its jobs placed by a policy, its readings generated (traces hold none)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random

from gpuwatch.errors import InputError
from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import Job
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.simulate.behavior import BEHAVIORS, BY_KIND, Behavior
from gpuwatch.simulate.layout import pick
from gpuwatch.simulate.telemetry import DeviceLoad, observe
from gpuwatch.traces.trace_format import empty_snapshot, read_trace
from gpuwatch_exporters.replay.moments import Moment, PodsByDevice

_MAX_ARRIVALS_AT_ONCE = 500  # after a long pause the stream catches up no faster than this per refresh


class TraceWorld:
    """The trace in `folder`, filled to `load` (share of all GPUs asked for by the jobs that have arrived).

    arrivals_per_minute: how many jobs come from then on; as many GPUs' worth of the oldest end, so that the load
    stays. 0 stands still.
    """

    kind = "trace"

    def __init__(
        self,
        start: datetime,
        folder: Path,
        workload: str = "default",
        load: float = 0.8,
        policy: str = "best_fit",
        seed: int | None = None,
        arrivals_per_minute: float = 0.0,
    ) -> None:
        trace = read_trace(folder, workload=workload)
        empty = empty_snapshot(trace)
        capacity = MILLI * sum(len(node.gpus) for node in empty.nodes)
        if not capacity:
            raise InputError(f"the trace in {folder} has no node with a GPU", todo="choose another --trace folder")
        self._limit = round(load * capacity)
        arrived = tuple(_dated(job, start) for job in trace.jobs)
        placed = place_stream(
            replace(empty, taken_at=start), arrived, policy=policy, until_milligpu=self._limit, seed=seed
        )
        known = {job.id for job in placed.jobs}
        self._coming = [job for job in trace.jobs if job.id not in known] or list(trace.jobs)
        self._came = 0
        self._policy, self._seed = policy, 0 if seed is None else seed
        self._start, self._rate = start, arrivals_per_minute
        self._snapshot = placed
        self.told = (
            f"trace {folder.name}/{workload}, {len(placed.jobs)} jobs at load "
            f"{load:g} by {policy}; readings are generated"
        )

    def at(self, now: datetime) -> Moment:
        due = int((now - self._start).total_seconds() / 60 * self._rate) - self._came
        if due > 0:
            self._snapshot = self._after(min(due, _MAX_ARRIVALS_AT_ONCE), now)
        return Moment(self._snapshot)

    def dress(self, node: Node, pods: PodsByDevice, now: datetime) -> Node:
        loads = {gpu.index: DeviceLoad(shares=tuple(self._behavior(node, gpu.index, pods))) for gpu in node.gpus}
        lit = replace(node, gpus=tuple(replace(gpu, telemetry_reason=None) for gpu in node.gpus))
        return observe(lit, loads, self._seed, now)

    def _behavior(self, node: Node, index: int, pods: PodsByDevice) -> list[tuple[Behavior, int]]:
        found = []
        for pod in pods.get((index, None), ()):
            held = next(hold.milligpu for hold in pod.member.shares if hold.gpu_index == index)
            does = pick(Random(f"{self._seed}/{pod.job.id}"), BY_KIND[pod.job.kind])
            found.append((BEHAVIORS[does], held))
        return found

    def _after(self, count: int, now: datetime) -> ClusterSnapshot:
        """The cluster after `count` more arrivals; the oldest running jobs make room for what they ask."""
        new = []
        for _ in range(count):
            job = self._coming[self._came % len(self._coming)]
            again = self._came // len(self._coming)
            new.append(_dated(_again(job, again) if again else job, now))
            self._came += 1
        stay = _without_oldest(self._snapshot.jobs, self._limit - sum(_milligpu(job) for job in new))
        return place_stream(replace(self._snapshot, taken_at=now, jobs=stay), new, policy=self._policy)


def _milligpu(job: Job) -> int:
    return job.shape.milligpu * max(1, len(job.members))


def _without_oldest(jobs: tuple[Job, ...], limit_milligpu: int) -> tuple[Job, ...]:
    """Drops jobs from the front (they came first) until the rest asks for no more than the limit."""
    asked = sum(_milligpu(job) for job in jobs)
    for gone, job in enumerate(jobs):
        if asked <= limit_milligpu:
            return jobs[gone:]
        asked -= _milligpu(job)
    return ()


def _dated(job: Job, at: datetime) -> Job:
    """Trace dates count from an unknown day; a replayed job came at `at`."""
    return replace(job, submitted_at=at, started_at=at, last_checkpoint_at=None)


def _again(job: Job, round_number: int) -> Job:
    """The list is over and starts again: the same job under a new name."""
    name = f"{job.name}-{round_number + 1}"
    members = tuple(replace(m, name=f"{m.name}-{round_number + 1}") for m in job.members)
    return replace(job, id=f"{job.id}-{round_number + 1}", name=name, members=members)
