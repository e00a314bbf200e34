"""A row of `partitions` as a Partition, and a row of `reservations` as a Reservation: flat as in the oldest schema,
nested as in the later ones, or the words of `scontrol --oneliner` where it prints no JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gpuwatch_exporters.slurm.read.fields import Row, count, find, moment, number, text, words
from gpuwatch_exporters.slurm.read.lists import expand
from gpuwatch_exporters.slurm.read.unknown import Unknown
from gpuwatch_exporters.slurm.records import Partition, Reservation

_DURATION = re.compile(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?")


def read_partition(row: Row, unknown: Unknown) -> Partition | None:
    """None, and counted, for a row without a name."""
    name = text(find(row, "name", "PartitionName"))
    if not name:
        unknown.add("row", "a partition without a name")
        return None
    minutes = number(find(row, "maximums/time", "max_time_limit"))
    state = words(find(row, "partition/state", "state", "State"))
    return Partition(
        name=name,
        state=state[0] if state else "unknown",
        oversubscribe=_oversubscribe(row),
        nodes=count(find(row, "nodes/total", "total_nodes", "TotalNodes")),
        max_seconds=minutes * 60 if minutes is not None else seconds(text(row.get("MaxTime"))),
        max_nodes=count(find(row, "maximums/nodes", "maximum_nodes_per_job", "MaxNodes")),
        priority_tier=count(find(row, "priority/tier", "priority_tier", "PriorityTier")),
        cluster=text(row.get("cluster")),
    )


def read_reservation(row: Row, unknown: Unknown) -> Reservation | None:
    """None, and counted, for a row without a name."""
    name = text(find(row, "name", "ReservationName"))
    if not name:
        unknown.add("row", "a reservation without a name")
        return None
    told = text(find(row, "node_list", "Nodes"))
    try:
        nodes = expand(told)
    except ValueError:
        unknown.add("node_list", told)
        nodes = ()
    return Reservation(
        name=name,
        nodes=nodes,
        node_count=count(find(row, "node_count", "NodeCnt")),
        starts_at=moment(row.get("start_time")) or _local(text(row.get("StartTime"))),
        ends_at=moment(row.get("end_time")) or _local(text(row.get("EndTime"))),
        flags=tuple(sorted(words(find(row, "flags", "Flags")))),
    )


def oneline_rows(printed: str) -> Iterator[dict[str, Any]]:
    """Rows of `scontrol --oneliner`: key=value with blanks between, one record a line. "No reservations in the
    system" is no row."""
    for line in printed.splitlines():
        pairs = (word.partition("=") for word in line.split(" ") if "=" in word)
        row = {key: held for key, _, held in pairs}
        if row:
            yield row


def seconds(told: str) -> float | None:
    """[days-]hours:minutes[:seconds] as Slurm writes times; None for UNLIMITED."""
    found = _DURATION.fullmatch(told)
    if not found:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)


def _oversubscribe(row: Row) -> str:
    """no, yes, force or exclusive; "" where the schema does not tell."""
    told = text(row.get("OverSubscribe")).partition(":")[0].lower()
    if told:
        return told
    jobs, flags = find(row, "maximums/oversubscribe/jobs"), words(find(row, "maximums/oversubscribe/flags"))
    if jobs is None:
        return ""
    if "force" in flags:
        return "force"
    most = count(jobs) or 0
    return "exclusive" if most == 0 else "no" if most == 1 else "yes"


def _local(told: str) -> float | None:
    try:
        return datetime.fromisoformat(told).astimezone().timestamp()
    except ValueError:
        return None
