"""What every trace format gives: nodes and the jobs in the order of the file, nothing bound."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import Job
from gpuwatch.model.values import value
from gpuwatch.registry import Registry


@value
class JobTrace:
    """A cluster and the stream of jobs that was submitted to it; jobs are pending and bound to no node."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    workload: str


class TraceFormat(Protocol):
    """Reads one trace folder."""

    def __call__(self, folder: Path, workload: str = "default") -> JobTrace:
        """Raises InputError that names file, line and column of the first row that cannot be what it claims."""
        ...


TRACES: Registry[TraceFormat] = Registry("trace format", "gpuwatch.traces")
