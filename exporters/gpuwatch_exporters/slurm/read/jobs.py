"""A row of `jobs` as a Job."""

from __future__ import annotations

import math

from gpuwatch_exporters.slurm.read import gres as gres_text
from gpuwatch_exporters.slurm.read import tres as tres_text
from gpuwatch_exporters.slurm.read.fields import Row, count, find, moment, number, text, words
from gpuwatch_exporters.slurm.read.lists import expand, tasks
from gpuwatch_exporters.slurm.read.states import HOLDS, job_state
from gpuwatch_exporters.slurm.read.unknown import Unknown
from gpuwatch_exporters.slurm.records import Gres, Job


def read_job(row: Row, unknown: Unknown) -> Job | None:
    """None, and counted, for a row without an id."""
    id_ = count(row.get("job_id"))
    if id_ is None:
        unknown.add("row", "a job without an id")
        return None
    state = job_state(words(row.get("job_state")), unknown)
    nodes, minutes = count(row.get("node_count")), number(row.get("time_limit"))
    asked = _asked(row, nodes, unknown)
    details = _details(row, unknown) if state in HOLDS else []
    held, per_node = _held(row, details, nodes, unknown) if state in HOLDS else ({}, None)
    total = sum((held if state in HOLDS else asked).values())
    return Job(
        id=_id(row, id_),
        state=state,
        partition=text(row.get("partition")),
        account=text(row.get("account")),
        user=text(row.get("user_name")),
        reason=_reason(row) if state == "pending" else "",
        tasks=_tasks(row, unknown) if state == "pending" else 1,
        nodes=nodes,
        node_names=_node_names(row, unknown) if state in HOLDS else (),
        exclusive="none" in words(row.get("shared")),
        gpus=held,
        gpus_asked=asked,
        gpus_per_node=per_node or (math.ceil(total / nodes) if nodes else None),
        others=tuple(each for entries in details for each in entries if each.name != "gpu"),
        submitted_at=moment(row.get("submit_time")),
        eligible_at=moment(row.get("eligible_time")),
        ends_at=moment(row.get("end_time")),
        limit_seconds=None if minutes is None else minutes * 60,
        cluster=text(row.get("cluster")),
    )


def _id(row: Row, id_: int) -> str:
    """The id as squeue writes it: 12, 12_3 for a task of an array, 12+1 for a component."""
    array, task = count(row.get("array_job_id")), count(row.get("array_task_id"))
    if array and task is not None:
        return f"{array}_{task}"
    leader, offset = count(row.get("het_job_id")), count(row.get("het_job_offset"))
    return f"{leader}+{offset}" if leader and offset is not None else str(id_)


def _tasks(row: Row, unknown: Unknown) -> int:
    told = text(row.get("array_task_string"))
    if not told:
        return 1
    named, whole = tasks(told)
    if not whole:
        unknown.add("task_list", told)
    return max(named, 1)


def _reason(row: Row) -> str:
    """The reason's code alone: what follows a comma or a parenthesis names nodes or limits. One long sentence stands
    for a code in older releases."""
    told = text(row.get("state_reason"))
    if told.lower().startswith("nodes required for job are"):
        return "NodesDownOrReserved"
    return told.partition(",")[0].partition("(")[0].strip().replace(" ", "_")[:60] or "None"


def _node_names(row: Row, unknown: Unknown) -> tuple[str, ...]:
    told = text(row.get("nodes"))
    try:
        return expand(told)
    except ValueError:
        unknown.add("node_list", told)
        return ()


def _details(row: Row, unknown: Unknown) -> list[list[Gres]]:
    """What it holds, node by node."""
    return [gres_text.read_gres(told, unknown) for told in row.get("gres_detail") or () if isinstance(told, str)]


def _held(
    row: Row, details: list[list[Gres]], nodes: int | None, unknown: Unknown
) -> tuple[dict[str, int], int | None]:
    """(GPUs by type, most on one node) that the job holds. tres_alloc counts them whatever option asked for them; the
    detail per node knows their types, and is all there is where Slurm's accounting does not track GPUs."""
    amounts = tres_text.read_tres(text(find(row, "tres_alloc_str", "tres/allocated")), unknown)
    counted = tres_text.gpus(amounts)
    detailed = gres_text.by_type(each for entries in details for each in entries)
    sizes = [sum(gres_text.by_type(entries).values()) for entries in details]
    most = max(sizes, default=0) or None
    if not counted or sum(counted.values()) == sum(detailed.values()):
        return detailed, most
    return counted, math.ceil(sum(counted.values()) / nodes) if nodes else None


def _asked(row: Row, nodes: int | None, unknown: Unknown) -> dict[str, int]:
    """GPUs by type that one task asks for: tres_req, else reckoned from the options where GPUs are not tracked."""
    counted = tres_text.gpus(tres_text.read_tres(text(row.get("tres_req_str")), unknown))
    if counted:
        return counted
    for key, times in (("tres_per_job", 1), ("tres_per_node", nodes), ("tres_per_task", count(row.get("tasks")))):
        found = gres_text.by_type(gres_text.read_gres(text(row.get(key)), unknown))
        if found:
            return {kind: held * (times or 1) for kind, held in found.items()}
    return {}
