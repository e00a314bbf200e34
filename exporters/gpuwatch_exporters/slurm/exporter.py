"""The Slurm exporter: calls that are due, then everything that their records add up to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpuwatch.clock import Clock, SystemClock
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.slurm.ask.calls import Call
from gpuwatch_exporters.slurm.ask.errors import CallError
from gpuwatch_exporters.slurm.ask.pace import Pace
from gpuwatch_exporters.slurm.ask.source import Source
from gpuwatch_exporters.slurm.count.health import health_samples
from gpuwatch_exporters.slurm.count.jobs import job_samples, tenant_samples, whole_nodes
from gpuwatch_exporters.slurm.count.nodes import node_samples
from gpuwatch_exporters.slurm.count.partitions import partition_gpu_samples, partition_samples, reservation_samples
from gpuwatch_exporters.slurm.count.single import Wanted, single_samples
from gpuwatch_exporters.slurm.family import Sample
from gpuwatch_exporters.slurm.page import render
from gpuwatch_exporters.slurm.read.jobs import read_job
from gpuwatch_exporters.slurm.read.nodes import read_node
from gpuwatch_exporters.slurm.read.partitions import read_partition, read_reservation
from gpuwatch_exporters.slurm.records import Job, Node, Partition, Reservation

_SLOW_SECONDS = 60.0  # partitions and reservations change by hand


@dataclass(frozen=True)
class Settings:
    """What is asked, and how often at most. Times in seconds."""

    timeout_seconds: float = 20.0
    min_call_seconds: float = 15.0
    cluster: str = ""
    without: tuple[str, ...] = ()  # of partitions, reservations
    per_user: bool = False
    most_tenants: int = 500
    single: Wanted = field(default_factory=Wanted)


class SlurmExporter(Exporter):
    """Asks `source` and prints aggregates."""

    name: ClassVar[str] = "slurm"
    help: ClassVar[str] = "nodes, GPUs, jobs and waiting reasons of a Slurm cluster"

    def __init__(self, source: Source, settings: Settings, clock: Clock | None = None) -> None:
        self._source, self._settings = source, settings
        self._clock = clock or SystemClock()
        floor = settings.min_call_seconds
        self._nodes: Call[Node] = Call("nodes", read_node, source, Pace(floor), self._clock)
        self._jobs: Call[Job] = Call("jobs", read_job, source, Pace(floor), self._clock)
        self._partitions: Call[Partition] = Call(
            "partitions", read_partition, source, Pace(floor, _SLOW_SECONDS), self._clock
        )
        self._reservations: Call[Reservation] = Call(
            "reservations", read_reservation, source, Pace(floor, _SLOW_SECONDS), self._clock
        )
        every: list[Call[Any]] = [self._nodes, self._jobs, self._partitions, self._reservations]
        self._calls = [call for call in every if call.name not in settings.without]
        self._cluster = settings.cluster
        self._name_pace = Pace(floor, _SLOW_SECONDS)

    def cycle(self) -> str:
        """Makes the calls that are due. A call that fails leaves its values out of the page and is counted there; when
        the controller is silent nothing else is asked, so that a cycle lasts one timeout at most."""
        speaks = True
        for call in self._calls:
            speaks = speaks and call.refresh(self._settings.timeout_seconds)
        if not speaks:
            for call in self._calls:
                call.drop()
        elif not self._cluster:
            self._cluster = self._find_cluster()
        return render(self._samples(), self._cluster)

    def notes(self) -> list[str]:
        """What is asked, and what fails now and why."""
        cluster = (
            f"cluster {self._cluster}" if self._cluster else "the cluster's name is not known; --cluster gives one"
        )
        failing = [f"{call.name} fail: {call.told}" for call in self._calls if call.told]
        off = [f"{name} are not asked (--without)" for name in self._settings.without]
        return [f"{cluster}; {self._source.told()}", *failing, *off]

    def close(self) -> None:
        """Ends a command that is under way."""
        self._source.close()

    def _samples(self) -> Iterator[Sample]:
        now = self._clock.now().timestamp()
        nodes, jobs = self._nodes.records, self._jobs.records
        whole = None if jobs is None else whole_nodes(jobs)
        if nodes is not None:
            yield from node_samples(nodes, whole).samples()
            yield from partition_gpu_samples(nodes, whole).samples()
        if jobs is not None:
            yield from job_samples(jobs, now).samples()
            yield from tenant_samples(jobs, self._settings.most_tenants, self._settings.per_user).samples()
        if self._partitions.records is not None:
            yield from partition_samples(self._partitions.records).samples()
        if self._reservations.records is not None:
            yield from reservation_samples(self._reservations.records, nodes, now).samples()
        yield from single_samples(nodes or (), jobs or (), self._settings.single)
        yield from health_samples(self._calls, self._source.name, nodes)

    def _find_cluster(self) -> str:
        """From an answer's meta data (23.11 and later), else from the configuration, else from the jobs: whatever is
        found first is kept, so that the label never changes."""
        for call in self._calls:
            if call.release[2]:
                return call.release[2]
        if self._name_pace.due(self._clock.monotonic()):
            self._name_pace.called(self._clock.monotonic())
            try:
                if found := self._source.cluster(self._settings.timeout_seconds):
                    return found
            except CallError:
                pass  # asked again later; the page is whole without the name
        told = (
            record.cluster for records in (self._partitions.records, self._jobs.records) for record in records or ()
        )
        return next(filter(None, told), "")
