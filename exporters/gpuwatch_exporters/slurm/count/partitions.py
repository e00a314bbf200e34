"""Partitions and reservations, with the GPUs of their nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gpuwatch_exporters.slurm.count.nodes import held_whole, takes_work, unallocated
from gpuwatch_exporters.slurm.count.tally import Tally
from gpuwatch_exporters.slurm.families import partitions as of
from gpuwatch_exporters.slurm.families import reservations as of_reservations
from gpuwatch_exporters.slurm.records import Node, Partition, Reservation


def partition_samples(partitions: Iterable[Partition]) -> Tally:
    """What the partitions tell of themselves."""
    tally = Tally()
    for each in partitions:
        tally.add(of.INFO, each.name, each.state, each.oversubscribe)
        tally.add(of.UP, each.name, number=each.state == "up")
        for family, told in (
            (of.NODES, each.nodes),
            (of.MAX_TIME, each.max_seconds),
            (of.MAX_NODES, each.max_nodes),
            (of.TIER, each.priority_tier),
        ):
            if told is not None:
                tally.add(family, each.name, number=told)
    return tally


def partition_gpu_samples(nodes: Iterable[Node], whole: Collection[str] | None) -> Tally:
    """GPUs of the partitions' nodes; `whole` as for node_samples. What may be held is not free."""
    tally = Tally()
    for node in nodes:
        for partition in node.partitions:
            for kind, installed in node.gpus.items():
                tally.add(of.GPUS, partition, kind, number=installed)
                if node.gpus_used is not None:
                    tally.add(of.GPUS_ALLOCATED, partition, kind, number=node.gpus_used.get(kind, 0))
            for kind, left in unallocated(node):
                free = left if takes_work(node) and held_whole(node, whole) is False else 0
                tally.add(of.GPUS_FREE, partition, kind, number=free)
    return tally


def reservation_samples(reservations: Iterable[Reservation], nodes: Iterable[Node] | None, now: float) -> Tally:
    """Reservations; their GPUs where the nodes are known."""
    by_name = {node.name: node for node in nodes or ()}
    tally = Tally()
    for each in reservations:
        starts, ends = each.starts_at, each.ends_at
        if starts is not None:
            tally.add(of_reservations.START, each.name, number=starts)
            tally.add(of_reservations.ACTIVE, each.name, number=starts <= now < (ends or now + 1))
        if ends is not None:
            tally.add(of_reservations.END, each.name, number=ends)
        tally.add(of_reservations.MAINTENANCE, each.name, number="maint" in each.flags)
        if each.node_count is not None:
            tally.add(of_reservations.NODES, each.name, number=each.node_count)
        for name in each.nodes:
            for kind, installed in by_name[name].gpus.items() if name in by_name else ():
                tally.add(of_reservations.GPUS, each.name, kind, number=installed)
    return tally
