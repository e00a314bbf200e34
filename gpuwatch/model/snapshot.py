"""The cluster at one instant, with the health of every source that it was read from."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from gpuwatch.model.cluster import Node
from gpuwatch.model.jobs import Job, ShapeCount
from gpuwatch.model.values import value

SNAPSHOT_SCHEMA = "gpuwatch.snapshot/1"

Severity = Literal["info", "warning", "critical"]


@value
class SourceHealth:
    """How one source answered. A failed source makes its part unknown, never empty."""

    name: str
    kind: str  # prometheus | file | trace | generated
    ok: bool
    observed_at: datetime | None = None
    cause: str | None = None  # stable code when not ok (see errors.SourceError)
    detail: str | None = None


@value
class Finding:
    """Something odd in the data, told with its subject and how the reader decided; repeated ones carry a count."""

    code: str
    severity: Severity
    subject: str
    detail: str
    count: int = 1


@value
class ClusterSnapshot:
    """The cluster at `taken_at`. Job members refer to nodes by name and to devices by index on that node."""

    cluster: str
    taken_at: datetime
    nodes: tuple[Node, ...] = ()
    jobs: tuple[Job, ...] = ()
    arrivals: tuple[ShapeCount, ...] = ()  # shapes submitted lately; empty: the jobs above stand for the demand
    arrivals_basis: str | None = None  # where `arrivals` comes from, in words
    sources: tuple[SourceHealth, ...] = ()
    findings: tuple[Finding, ...] = ()
    metrics: tuple[str, ...] = ()  # names of the series that it was read from, sorted; empty: not from monitoring
    spellings: tuple[str, ...] = ()  # and the spellings of their labels
    schema_version: Literal["gpuwatch.snapshot/1"] = "gpuwatch.snapshot/1"
