"""Nodes and their GPUs, CPUs and memory. A node counts once, whatever partitions it stands in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gpuwatch_exporters.slurm.count.tally import Tally
from gpuwatch_exporters.slurm.families import gpus as of_gpus
from gpuwatch_exporters.slurm.families import nodes as of
from gpuwatch_exporters.slurm.read.states import CONDITIONS, TAKES_WORK
from gpuwatch_exporters.slurm.records import Node

_ALWAYS = (of_gpus.ALLOCATED, of_gpus.SHARED, of_gpus.HELD, of_gpus.FREE, of_gpus.PROMISED, of_gpus.UNKNOWN)


def node_samples(nodes: Iterable[Node], whole: Collection[str] | None) -> Tally:
    """`whole`: names of the nodes that a job has for itself, None where the jobs are not told."""
    tally = Tally()
    for condition in CONDITIONS:
        tally.add(of.NODES, condition, number=0)  # a condition that nobody is in is 0, so that its alert can end
    for node in nodes:
        tally.add(of.NODES, node.condition)
        tally.add(of.BY_BASE, node.base)
        for flag in node.flags:
            tally.add(of.FLAGGED, flag)
        _beside(tally, node)
        _gpus(tally, node, held_whole(node, whole))
        for each in node.others:
            tally.add(of_gpus.GRES, each.name, each.type, number=each.count)
    return tally


def unallocated(node: Node) -> Iterator[tuple[str, int]]:
    """(type, GPUs of which nothing is allocated) of a node whose use is told."""
    if node.gpus_used is None:
        return
    for kind, installed in node.gpus.items():
        yield kind, max(installed - node.gpus_used.get(kind, 0) - node.gpus_shared.get(kind, 0), 0)


def takes_work(node: Node) -> bool:
    """Whether Slurm may start something there now."""
    return node.condition in TAKES_WORK


def held_whole(node: Node, whole: Collection[str] | None) -> bool | None:
    """Whether a job has the node for itself. None: it may be, for the jobs are not told and all of its CPUs are taken,
    as such a job takes them."""
    if whole is None:
        return None if node.base == "allocated" else False
    return node.name in whole


def _gpus(tally: Tally, node: Node, whole: bool | None) -> None:
    for kind, installed in node.gpus.items():
        tally.add(of_gpus.INSTALLED, kind, number=installed)
        tally.add(of_gpus.BY_CONDITION, kind, node.condition, number=installed)
        for family in _ALWAYS:
            tally.add(family, kind, number=0)
        for cause in ("cpu", "memory"):
            tally.add(of_gpus.STRANDED, kind, cause, number=0)
        if node.gpus_used is None:
            tally.add(of_gpus.UNKNOWN, kind, number=installed)
    for kind, used in (node.gpus_used or {}).items():
        tally.add(of_gpus.ALLOCATED, kind, number=used)
    if node.gpus_used is not None:
        for kind, shared in node.gpus_shared.items():
            tally.add(of_gpus.SHARED, kind, number=shared)
    for kind, left in unallocated(node):
        _left(tally, node, whole, kind, left)


def _left(tally: Tally, node: Node, whole: bool | None, kind: str, left: int) -> None:
    """GPUs of one type that no job got."""
    if whole is None:
        tally.add(of_gpus.UNKNOWN, kind, number=left)
    elif whole:
        tally.add(of_gpus.HELD, kind, number=left)
    elif takes_work(node):
        tally.add(of_gpus.FREE, kind, number=left)
        tally.add(of.WITH_FREE, kind, str(left))
        if node.condition == "planned":
            tally.add(of_gpus.PROMISED, kind, number=left)
        for cause, total, used in (
            ("cpu", node.cpus, node.cpus_used),
            ("memory", node.memory_bytes, node.memory_used_bytes),
        ):
            if total is not None and used is not None and used >= total:
                tally.add(of_gpus.STRANDED, kind, cause, number=left)
    elif left:
        tally.add(of_gpus.BLOCKED, kind, node.condition, number=left)


def _beside(tally: Tally, node: Node) -> None:
    """CPU and memory, which strand the GPUs beside them when they are gone."""
    kind = "gpu" if node.gpus else "cpu"
    for total, used, families in (
        (node.cpus, node.cpus_used, (of.CPUS, of.CPUS_USED, of.CPUS_FREE)),
        (node.memory_bytes, node.memory_used_bytes, (of.MEMORY, of.MEMORY_USED, of.MEMORY_FREE)),
    ):
        if total is None or used is None:
            continue
        free = max(total - used, 0) if takes_work(node) else 0
        for family, amount in zip(families, (total, used, free), strict=True):
            tally.add(family, kind, number=amount)
