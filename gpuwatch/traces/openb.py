"""The openb trace (GPU sharing, 2023): 1,213 GPU nodes and lists of 8,152 pods, each pod one job of one member.

The lists are arrival streams: whatever phase a pod had when the trace was taken, here it is pending and bound to
nothing, as in the published experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from gpuwatch.model.catalogue import match
from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.jobs import DemandShape, Job, JobKind, Member
from gpuwatch.model.units import MIB, MILLI
from gpuwatch.model.values import value
from gpuwatch.traces.csv_rows import Row, find_table, read_rows, tables
from gpuwatch.traces.trace_format import TRACE_START, TRACES, JobTrace

T = TypeVar("T")

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_POD_OPTIONAL = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
# LS is latency-sensitive, BE best-effort work; the two Kubernetes classes say nothing about what runs.
_KINDS: dict[str, JobKind] = {"LS": "inference", "BE": "batch", "Burstable": "unknown", "Guaranteed": "unknown"}

_MAX_CPU_MILLICORES = 4_096_000
_MAX_MEMORY_MIB = 64 * 2**20
_MAX_GPUS = 128
_MAX_SECONDS = 10 * 366 * 86_400


@value
class OpenbTrace(JobTrace):
    """Nodes and jobs in file order."""

    name: str = "openb"


def read_openb(folder: Path, workload: str = "default", nodes: str = "gpu_node") -> OpenbTrace:
    """Reads one node list ("gpu_node", "all_node") and one pod list ("default", "cpu050", "multigpu20" ...).

    Raises InputError naming file, line and column.
    """
    node_rows = read_rows(find_table(folder, f"openb_node_list_{nodes}", "node list"), _NODE_COLUMNS)
    read_nodes = tuple(_unique(node_rows, "sn", _node))
    pod_rows = read_rows(find_table(folder, f"openb_pod_list_{workload}", "pod list"), _POD_COLUMNS, _POD_OPTIONAL)
    timed = tuple(_unique(pod_rows, "name", _timed_job))
    return OpenbTrace(
        nodes=read_nodes,
        jobs=tuple(job for job, _ in timed),
        workload=workload,
        duration_seconds={job.id: seconds for job, seconds in timed if seconds is not None},
    )


class _Openb:
    """The format as the registry knows it."""

    files = "openb_node_list_*.csv and openb_pod_list_*.csv, each plain or .gz"

    def recognizes(self, folder: Path) -> bool:
        return any(folder.glob("openb_*_list_*.csv*"))

    def workloads(self, folder: Path) -> tuple[str, ...]:
        return tables(folder, "openb_pod_list_")

    def read(self, folder: Path, workload: str = "default") -> OpenbTrace:
        return read_openb(folder, workload)


TRACES.register("openb")(_Openb())


def _unique(rows: Iterable[Row], column: str, make: Callable[[Row], T]) -> Iterator[T]:
    """make(row) for each row, refusing a name that comes twice: it would be counted twice everywhere."""
    seen: dict[str, int] = {}
    for row in rows:
        name = row.text(column)
        if name in seen:
            raise row.fault(column, f"repeats {name!r} of line {seen[name]}")
        seen[name] = row.line
        yield make(row)


def _node(row: Row) -> Node:
    count = row.number("gpu", 0, _MAX_GPUS)
    product = row.text("model", default="") if count == 0 else row.text("model")
    if count == 0 and product:
        raise row.fault("model", f"names {product!r} on a node without GPUs")
    name = row.text("sn")
    return Node(
        name=name,
        gpus=tuple(
            Gpu(index=index, uuid=f"{name}-{index}", model=_model(product), product=product, health="healthy")
            for index in range(count)
        ),
        cpu_allocatable_millicores=row.number("cpu_milli", 1, _MAX_CPU_MILLICORES),
        memory_allocatable_bytes=row.number("memory_mib", 1, _MAX_MEMORY_MIB) * MIB,
    )


def _timed_job(row: Row) -> tuple[Job, int | None]:
    return _job(row), _duration(row)


def _job(row: Row) -> Job:
    name = row.text("name")
    gpus = row.number("num_gpu", 0, _MAX_GPUS)
    lowest, highest = (0, 0) if gpus == 0 else (1, MILLI) if gpus == 1 else (MILLI, MILLI)
    milligpu = row.number("gpu_milli", lowest, highest)
    shape = DemandShape(
        gpus=gpus,
        milligpu_per_gpu=milligpu if gpus else MILLI,
        cpu_millicores=row.number("cpu_milli", 0, _MAX_CPU_MILLICORES),
        memory_bytes=row.number("memory_mib", 0, _MAX_MEMORY_MIB) * MIB,
        gpu_models=_accepted(row),
    )
    return Job(
        id=name,
        name=name,
        shape=shape,
        members=(Member(name=name),),
        kind=_kind(row),
        phase="pending",
        submitted_at=_submitted(row),
    )


def _accepted(row: Row) -> tuple[str, ...]:
    text = row.text("gpu_spec", default="")
    names = [name.strip() for name in text.split("|")] if text else []
    if not all(names):
        raise row.fault("gpu_spec", f"is {text!r}: an accepted model between two bars is empty")
    return tuple(sorted({_model(name) for name in names}))


def _kind(row: Row) -> JobKind:
    qos = row.text("qos", default="")
    if qos and qos not in _KINDS:
        raise row.fault("qos", f"is {qos!r}, not one of {', '.join(_KINDS)}")
    return _KINDS.get(qos, "unknown")


def _submitted(row: Row) -> datetime | None:
    if not row.text("creation_time", default=""):
        return None
    return TRACE_START + timedelta(seconds=row.number("creation_time", 0, _MAX_SECONDS))


def _duration(row: Row) -> int | None:
    """From being scheduled to being deleted; None for a pod that never was, and in lists without times.

    Pods that ran when the trace was taken were deleted at its end, as far as it tells.
    """
    if not (row.text("scheduled_time", default="") and row.text("deletion_time", default="")):
        return None
    began = row.number("scheduled_time", 0, _MAX_SECONDS)
    return row.number("deletion_time", began, _MAX_SECONDS) - began


def _model(product: str) -> str:
    """The catalogue's id where it knows the card (V100M16 is V100-16); the trace's own name where it is anonymous."""
    card = match(product)
    return card.id if card else product
