"""What every trace format gives: nodes and the jobs in the order of the file, nothing bound. Reads any of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from gpuwatch.errors import InputError
from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import Job, ShapeCount
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.values import value
from gpuwatch.registry import Registry

# Traces that count seconds from their own start do not date it: any fixed origin will do.
TRACE_START = datetime(2023, 1, 1, tzinfo=UTC)


@value
class JobTrace:
    """A cluster and the stream of jobs that was submitted to it; jobs are pending and bound to no node."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    workload: str
    name: str = "trace"  # the format's id
    duration_seconds: dict[str, int] = field(default_factory=dict)  # how long each job ran, by id, where it is told


class TraceFormat(Protocol):
    """Reads the folders of one format."""

    files: str  # what such a folder holds, for a person

    def recognizes(self, folder: Path) -> bool:
        """True when the names of the files in `folder` are this format's. Opens none of them."""
        ...

    def workloads(self, folder: Path) -> tuple[str, ...]:
        """The job lists that `folder` holds, sorted. Opens none of them."""
        ...

    def read(self, folder: Path, workload: str = "default") -> JobTrace:
        """Raises InputError that names file, line and column of the first row that cannot be what it claims."""
        ...


TRACES: Registry[TraceFormat] = Registry("trace format", "gpuwatch.traces")


def read_trace(folder: Path, workload: str = "default") -> JobTrace:
    """Reads `folder` by the first format, in the order of ids, that recognizes it; InputError when none does."""
    return _format_of(folder).read(folder, workload)


def workloads_of(folder: Path) -> tuple[str, ...]:
    """The job lists of the trace in `folder`, sorted; InputError when no format recognizes it."""
    return _format_of(folder).workloads(folder)


def _format_of(folder: Path) -> TraceFormat:
    formats = dict(TRACES.items())
    for each in formats.values():
        if each.recognizes(folder):
            return each
    known = "; ".join(f"{id_}: {each.files}" for id_, each in formats.items())
    raise InputError(
        f"{folder} is no folder of a known trace",
        tried=f"looking for the files of each format ({known})",
        todo="name the folder that holds the trace's files",
    )


def empty_snapshot(trace: JobTrace) -> ClusterSnapshot:
    """The trace's cluster with nothing running; the whole job stream is its demand, its end is "now"."""
    counts = Counter(job.shape for job in trace.jobs for _ in job.members)
    submitted = [job.submitted_at for job in trace.jobs if job.submitted_at is not None]
    return ClusterSnapshot(
        cluster=f"{trace.name}-{trace.workload}",
        taken_at=max(submitted, default=TRACE_START),
        nodes=trace.nodes,
        arrivals=tuple(ShapeCount(shape=shape, count=count) for shape, count in counts.items()),
        arrivals_basis=f"all {len(trace.jobs):,} jobs of the {trace.name} list {trace.workload}",
    )
