"""What was read, in base units and without any trace of the schema it came in. None is always "not told"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNTYPED = "untyped"  # a GPU without a type in gres.conf
Amounts = Mapping[str, int]  # GPUs by type


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource of a node or job: shard:h100:4 is name "shard", type "h100", count 4. `indices` are those
    of the devices in use, None where Slurm does not tell them."""

    name: str
    type: str
    count: int
    indices: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `condition` is one of read.states.CONDITIONS, `base` and `flags` are Slurm's own words in lower case.

    gpus_used None: Slurm tells no use. used_indices None: it tells no indices. gpus_shared: GPUs of which shares
    (shard, mps) are in use; they are in use as wholes by nobody.
    """

    name: str
    condition: str
    base: str
    flags: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    gpus: Amounts = field(default_factory=dict)
    gpus_used: Amounts | None = None
    gpus_shared: Amounts = field(default_factory=dict)
    used_indices: frozenset[int] | None = None
    others: tuple[Gres, ...] = ()  # other generic resources than GPUs, as installed
    cpus: int | None = None
    cpus_used: int | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    gpus_tracked: bool = False  # Slurm's accounting counts them


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the queue: a job, a running task of an array, the waiting tasks of an array (`tasks` of them), or a
    component of a heterogeneous job. Times are Unix seconds. `gpus` is what it holds, `gpus_asked` what one task asks.
    """

    id: str
    state: str  # pending, running, ... in lower case; "unknown" for a word not known here
    partition: str = ""
    account: str = ""
    user: str = ""
    reason: str = ""
    tasks: int = 1
    nodes: int | None = None
    node_names: tuple[str, ...] = ()
    exclusive: bool = False
    gpus: Amounts = field(default_factory=dict)
    gpus_asked: Amounts = field(default_factory=dict)
    gpus_per_node: int | None = None
    others: tuple[Gres, ...] = ()  # other generic resources that it holds
    submitted_at: float | None = None
    eligible_at: float | None = None
    ends_at: float | None = None
    limit_seconds: float | None = None
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. A limit of None is no limit, or none told."""

    name: str
    state: str
    oversubscribe: str = ""
    nodes: int | None = None
    max_seconds: float | None = None
    max_nodes: int | None = None
    priority_tier: int | None = None
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation; times are Unix seconds."""

    name: str
    nodes: tuple[str, ...] = ()
    node_count: int | None = None
    starts_at: float | None = None
    ends_at: float | None = None
    flags: tuple[str, ...] = ()
