"""One cluster in one moment, as plain rows of the oldest schema, and as the later schemas print the same.

What differs between them: numbers that may be unset are wrapped, states are lists, limits of partitions are nested,
the resources asked for are spelled with a slash, and the answer's meta data moved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpuwatch_exporters.slurm.read.jobs import read_job
from gpuwatch_exporters.slurm.read.nodes import read_node
from gpuwatch_exporters.slurm.read.partitions import read_partition, read_reservation
from gpuwatch_exporters.slurm.read.unknown import Unknown

Row = dict[str, Any]
RELEASES = {
    "v0.0.38": "22.05.8", "v0.0.39": "23.02.7", "v0.0.40": "23.11.10", "v0.0.41": "24.05.4", "v0.0.42": "24.11.5",
    "v0.0.43": "25.05.1", "v0.0.44": "25.11.0", "v0.0.45": "26.05.0",
}  # fmt: skip
SCHEMAS = tuple(RELEASES)
NOW = 1_800_000_000
READERS = {"nodes": read_node, "jobs": read_job, "partitions": read_partition, "reservations": read_reservation}


def node(name: str, state: str, gres: str, used: str, **changes: Any) -> Row:
    """A node of 64 CPUs and 512 GiB; `state` is IDLE+PLANNED and the like."""
    base, *flags = state.split("+")
    return {
        "name": name, "state": base.lower(), "state_flags": flags, "gres": gres, "gres_used": used,
        "gres_drained": "N/A", "partitions": ["batch"], "cpus": 64, "alloc_cpus": 0, "real_memory": 524_288,
        "alloc_memory": 0, "tres": "cpu=64,mem=512G,billing=64,gres/gpu=8", "tres_used": None, "weight": 1,
        "cpu_load": 4294967294, "reason": "", **changes,
    }  # fmt: skip


NODES = [
    node("gpu001", "MIXED", "gpu:h100:8(S:0-1)", "gpu:h100:5(IDX:0-3,6)", alloc_cpus=40, alloc_memory=300_000,
         partitions=["batch", "urgent"]),
    node("gpu002", "ALLOCATED", "gpu:h100:8(S:0-1)", "gpu:h100:4(IDX:0-3)", alloc_cpus=64, alloc_memory=100_000),
    node("gpu003", "MIXED+PLANNED", "gpu:h100:8(S:0-1)", "gpu:h100:2(IDX:0-1)", alloc_cpus=8, alloc_memory=64_000),
    node("gpu004", "MIXED+DRAIN", "gpu:h100:8(S:0-1)", "gpu:h100:3(IDX:0-2)", alloc_cpus=8, alloc_memory=64_000),
    node("gpu005", "IDLE+DRAIN", "gpu:h100:8(S:0-1)", "gpu:h100:0(IDX:N/A)"),
    node("gpu006", "DOWN+NOT_RESPONDING", "gpu:h100:8(S:0-1)", "gpu:h100:0(IDX:N/A)"),
    node("gpu007", "IDLE+CLOUD+POWERED_DOWN", "gpu:l40s:4", "", tres="cpu=64,mem=512G,billing=64,gres/gpu=4"),
    node("gpu008", "IDLE+RESERVED+MAINTENANCE", "gpu:l40s:4", "gpu:l40s:0(IDX:N/A)"),
    node("gpu009", "MIXED", "gpu:a100:4(S:0),gpu:2,shard:a100:16(S:0)",
         "gpu:a100:1(IDX:0),gpu:(null):2(IDX:4-5),shard:a100:6(0/4,4/4,2/4,-/4)", alloc_cpus=4, alloc_memory=524_288),
    node("cpu001", "IDLE", "", "", tres="cpu=64,mem=512G,billing=64", partitions=["batch", "cpu"]),
]  # fmt: skip


def job(id_: int, state: str, **changes: Any) -> Row:
    """A job of account physics on one node, with a limit of 2 h, sent an hour ago."""
    runs = state == "RUNNING"
    return {
        "job_id": id_, "job_state": state, "account": "physics", "user_name": "ann", "partition": "batch",
        "array_job_id": 0, "array_task_id": None, "array_task_string": "", "het_job_id": 0, "het_job_offset": 0,
        "state_reason": "None" if runs else "Resources", "node_count": 1, "nodes": "gpu001" if runs else "",
        "shared": None, "tasks": 1, "time_limit": 120, "submit_time": NOW - 3600, "eligible_time": NOW - 3600,
        "start_time": NOW - 1800 if runs else 0, "end_time": NOW + 5400 if runs else 0, "tres_req_str": "",
        "tres_alloc_str": "", "gres_detail": [], "tres_per_node": "", "tres_per_job": "", "tres_per_task": "",
        "cluster": "north", **changes,
    }  # fmt: skip


def _gpu(count: int, typed: int | None = None) -> str:
    tail = "" if typed is None else f",gres/gpu:h100={typed}"
    return f"cpu=8,mem=62.5G,node=1,billing=8,gres/gpu={count}{tail}"


JOBS = [
    job(1, "RUNNING", tres_req_str=_gpu(5, 5), tres_alloc_str=_gpu(5, 5), gres_detail=["gpu:h100:5(IDX:0-3,6)"]),
    # Alone on its node: it asked for 4 of 8 GPUs, and this Slurm gives the other 4 to nobody.
    job(2, "RUNNING", shared="none", nodes="gpu002", tres_req_str=_gpu(4), tres_alloc_str=_gpu(4, 4),
        gres_detail=["gpu:h100:4(IDX:0-3)"], account="biology"),
    job(3, "RUNNING", nodes="gpu[003-004]", node_count=2, tres_req_str=_gpu(5), tres_alloc_str=_gpu(5),
        gres_detail=["gpu:h100:2(IDX:0-1)", "gpu:h100:3(IDX:0-2)"], array_job_id=3, array_task_id=7),
    job(4, "PENDING", array_job_id=4, array_task_string="0-9:3,20%2", state_reason="JobArrayTaskLimit",
        tres_req_str=_gpu(2)),
    job(5, "PENDING", partition="batch,urgent", node_count=4, tres_req_str=_gpu(32, 32), account="biology",
        state_reason="ReqNodeNotAvail, UnavailableNodes:gpu[005-006]", time_limit=None),
    # Slurm does not track GPUs in its accounting: only the options tell what is asked.
    job(6, "PENDING", tres_per_node="gres:gpu:h100:8", node_count=3, state_reason="Priority",
        submit_time=NOW - 90_000, eligible_time=NOW + 60, tres_req_str="cpu=3,mem=1G,node=3,billing=3"),
    job(7, "PENDING", tres_per_task="gres:gpu:2", tasks=4, state_reason="Priority", user_name="bob", account=""),
    job(8, "RUNNING", nodes="gpu009",
        gres_detail=["gpu:a100:1(IDX:0),gpu:(null):2(IDX:4-5),shard:a100:6(0/4,4/4,2/4,-/4)"],
        tres_alloc_str="cpu=4,mem=512G,node=1,billing=4", tres_per_node="gres:gpu:a100:1,gres:gpu:2", het_job_id=8,
        het_job_offset=0),
    job(9, "COMPLETED", end_time=NOW - 10, tres_alloc_str=_gpu(8)),
    job(10, "COMPLETING", nodes="gpu001", end_time=NOW - 1),
]  # fmt: skip

PARTITIONS = [
    {"name": "batch", "state": "UP", "max_time_limit": 2880, "maximum_nodes_per_job": -1, "total_nodes": 10,
     "priority_tier": 1},
    {"name": "urgent", "state": "DRAIN", "max_time_limit": -1, "maximum_nodes_per_job": 4, "total_nodes": 1,
     "priority_tier": 10},
]  # fmt: skip

RESERVATIONS = [
    {"name": "upkeep", "node_list": "gpu[008-009]", "node_count": 2, "start_time": NOW - 60, "end_time": NOW + 600,
     "flags": ["MAINT", "SPEC_NODES"]},
]  # fmt: skip

ROWS = {"nodes": NODES, "jobs": JOBS, "partitions": PARTITIONS, "reservations": RESERVATIONS}


def printed(call: str, schema: str) -> str:
    """The answer to a call as Slurm prints it in that schema."""
    rows = [dict(row) for row in ROWS[call]]
    if schema != "v0.0.38":
        rows = [_LATER[call](row, schema) for row in rows]
    return json.dumps({**_meta(schema, first=True), call: rows, **_meta(schema, first=False)}, indent=1)


def records(call: str, schema: str) -> tuple[list[Any], Unknown]:
    """The records that are read from it, and what was not understood."""
    unknown = Unknown()
    rows = json.loads(printed(call, schema))[call]
    return [READERS[call](row, unknown) for row in rows], unknown


def _meta(schema: str, *, first: bool) -> Row:
    """The old schema tells itself before the rows, the later ones after them."""
    release = RELEASES[schema]
    if schema == "v0.0.38":
        plugin = {"type": f"openapi/{schema}", "name": f"Slurm OpenAPI {schema}"}
        return {"meta": {"plugin": plugin, "Slurm": {"release": release}}, "errors": []} if first else {}
    plugin = {"type": "", "name": "", "data_parser": f"data_parser/{schema}"}
    slurm: Row = {"release": release}
    if schema != "v0.0.39":
        slurm["cluster"] = "north"
    key = "Slurm" if schema == "v0.0.39" else "slurm"
    after = {"last_update": _wrapped(NOW), "meta": {"plugin": plugin, key: slurm}, "errors": [], "warnings": []}
    return {} if first else after


def _wrapped(held: int | None) -> Mapping[str, Any]:
    """A number that may be unset or infinite."""
    infinite = held is not None and held < 0
    return {"set": held is not None and not infinite, "infinite": infinite, "number": max(held or 0, 0)}


def _later_node(row: Row, schema: str) -> Row:
    flags = row.pop("state_flags")
    row["state"] = [row["state"].upper(), *flags]
    row["tres_used"] = row["tres_used"] or ""
    row["free_mem"] = _wrapped(None)
    return {**row, "alloc_idle_cpus": 64 - row["alloc_cpus"], "resume_after": _wrapped(None)}


def _later_job(row: Row, schema: str) -> Row:
    wrapped = ["array_job_id", "array_task_id", "het_job_id", "het_job_offset", "node_count", "tasks", "time_limit"]
    if schema != "v0.0.39":
        wrapped += ["submit_time", "eligible_time", "start_time", "end_time"]
    for key in wrapped:
        row[key] = _wrapped(row[key])
    for key in ("tres_per_node", "tres_per_job", "tres_per_task"):
        row[key] = row[key].replace("gres:gpu", "gres/gpu")
    if schema != "v0.0.39":
        words = ["COMPLETED", "COMPLETING"] if row["job_state"] == "COMPLETING" else [row["job_state"]]
        row["job_state"] = words
    row["shared"] = [row["shared"]] if row["shared"] else []
    return row


def _later_partition(row: Row, schema: str) -> Row:
    return {
        "name": row["name"],
        "partition": {"state": [row["state"]]},
        "nodes": {"configured": "", "total": row["total_nodes"]},
        "maximums": {"time": _wrapped(row["max_time_limit"]), "nodes": _wrapped(row["maximum_nodes_per_job"])},
        "priority": {"tier": row["priority_tier"], "job_factor": 1},
    }


def _later_reservation(row: Row, schema: str) -> Row:
    if schema == "v0.0.39":
        return row
    return {**row, "start_time": _wrapped(row["start_time"]), "end_time": _wrapped(row["end_time"])}


_LATER = {
    "nodes": _later_node,
    "jobs": _later_job,
    "partitions": _later_partition,
    "reservations": _later_reservation,
}
