"""The same cluster in every schema gives the same records; each trap of the texts is one row of it."""

from __future__ import annotations

from typing import Any

import pytest
from gpuwatch_exporters.slurm.read.unknown import Unknown

from tests.exporters.slurm import situation
from tests.exporters.slurm.situation import NOW, READERS, SCHEMAS, records


@pytest.mark.parametrize("call", READERS)
@pytest.mark.parametrize("schema", SCHEMAS[1:])
def test_every_schema_tells_the_same(call: str, schema: str) -> None:
    told, unknown = records(call, schema)
    assert told == records(call, "v0.0.38")[0]
    assert None not in told
    assert not +unknown.counts


def by_name() -> dict[str, Any]:
    return {each.name: each for each in records("nodes", "v0.0.42")[0]}


def by_id() -> dict[str, Any]:
    return {each.id: each for each in records("jobs", "v0.0.42")[0]}


def test_nodes_and_their_gpus() -> None:
    nodes = by_name()
    assert {name: node.condition for name, node in nodes.items()} == {
        "gpu001": "mixed", "gpu002": "allocated", "gpu003": "planned", "gpu004": "draining", "gpu005": "drained",
        "gpu006": "down", "gpu007": "powered_down", "gpu008": "maintenance", "gpu009": "mixed", "cpu001": "idle",
    }  # fmt: skip
    assert nodes["gpu001"].gpus == {"h100": 8}
    assert nodes["gpu001"].gpus_used == {"h100": 5}
    assert nodes["gpu001"].used_indices == {0, 1, 2, 3, 6}
    assert nodes["gpu005"].used_indices == frozenset()
    assert nodes["gpu007"].gpus_used == {}  # nothing runs there, and tracked GPUs are not in tres_used
    assert nodes["gpu009"].gpus == {"a100": 4, "untyped": 2}
    assert nodes["gpu009"].gpus_used == {"a100": 1, "untyped": 2}
    assert [(each.name, each.type, each.count) for each in nodes["gpu009"].others] == [("shard", "a100", 16)]
    assert nodes["gpu009"].gpus_shared == {"a100": 2}
    assert nodes["gpu001"].memory_bytes == 512 * 2**30
    assert nodes["gpu001"].gpus_tracked
    assert not nodes["cpu001"].gpus


def test_jobs_and_what_they_hold_and_ask() -> None:
    jobs = by_id()
    assert jobs["1"].gpus == {"h100": 5}
    assert jobs["2"].exclusive
    assert jobs["2"].node_names == ("gpu002",)
    assert not jobs["1"].exclusive
    assert jobs["3_7"].gpus == {"h100": 5}  # the detail knows the types that tres_alloc leaves out
    assert jobs["3_7"].gpus_per_node == 3
    assert jobs["4"].tasks == 5
    assert jobs["4"].gpus_asked == {"untyped": 2}
    assert jobs["5"].gpus_asked == {"h100": 32}
    assert jobs["5"].reason == "ReqNodeNotAvail"
    assert jobs["5"].limit_seconds is None
    assert jobs["6"].gpus_asked == {"h100": 24}
    assert jobs["7"].gpus_asked == {"untyped": 8}
    assert jobs["8+0"].gpus == {"a100": 1, "untyped": 2}
    assert [(each.name, each.count) for each in jobs["8+0"].others] == [("shard", 6)]
    assert jobs["9"].gpus == {}
    assert jobs["9"].state == "completed"
    assert jobs["10"].state == "completing"
    assert jobs["1"].ends_at == NOW + 5400
    assert jobs["4"].eligible_at == NOW - 3600
    assert jobs["1"].cluster == "north"


def test_partitions_and_reservations() -> None:
    batch, urgent = records("partitions", "v0.0.43")[0]
    assert (batch.state, batch.max_seconds, batch.max_nodes, batch.nodes) == ("up", 172_800, None, 10)
    assert (urgent.state, urgent.max_seconds, urgent.max_nodes, urgent.priority_tier) == ("drain", None, 4, 10)
    [upkeep] = records("reservations", "v0.0.43")[0]
    assert upkeep.nodes == ("gpu008", "gpu009")
    assert (upkeep.starts_at, upkeep.ends_at) == (NOW - 60, NOW + 600)
    assert "maint" in upkeep.flags


@pytest.mark.parametrize(
    ("call", "row", "kind"),
    [
        ("nodes", {"state": "idle"}, "row"),
        ("nodes", situation.node("n", "IDLE+TELEPORTING", "gpu:h100:8", ""), "node_state"),
        ("nodes", {**situation.node("n", "IDLE", "gpu:h100:8", ""), "state": []}, "node_state"),
        ("nodes", situation.node("n", "IDLE", ":::", ""), "gres"),
        ("nodes", situation.node("n", "IDLE", "", "", tres="cpu=many"), "tres"),
        ("jobs", {"job_state": "RUNNING"}, "row"),
        ("jobs", situation.job(1, "DREAMING"), "job_state"),
        ("jobs", situation.job(1, "PENDING", array_task_string="1,3,5,..."), "task_list"),
        ("jobs", situation.job(1, "RUNNING", nodes="gpu[1-"), "node_list"),
        ("partitions", {"state": "UP"}, "row"),
        ("reservations", {"node_list": "a"}, "row"),
    ],
)
def test_what_is_not_understood_is_counted_and_never_stops(call: str, row: dict[str, Any], kind: str) -> None:
    unknown = Unknown()
    READERS[call](row, unknown)
    assert +unknown.counts == {kind: 1}


def test_a_field_of_another_type_is_as_if_it_were_not_there() -> None:
    unknown = Unknown()
    told = READERS["nodes"](situation.node("n", "IDLE", "gpu:2", "", alloc_cpus={"odd": 1}, cpus=[1]), unknown)
    assert (told.cpus, told.cpus_used) == (None, None)


def test_use_is_unknown_where_jobs_run_and_nothing_tells_their_gpus() -> None:
    untracked = {"tres": "cpu=64", "tres_used": "cpu=8"}
    unknown = Unknown()
    busy = READERS["nodes"](situation.node("n", "MIXED", "gpu:h100:8", "", alloc_cpus=8, **untracked), unknown)
    idle = READERS["nodes"](situation.node("n", "IDLE", "gpu:h100:8", "", alloc_cpus=0, **untracked), unknown)
    assert busy.gpus_used is None
    assert idle.gpus_used == {}


def test_a_tracked_type_that_no_job_named_is_not_lost() -> None:
    """tres_used counts a typed GPU under its type only where the job asked for the type."""
    row = situation.node(
        "n", "MIXED", "gpu:h200:8", "", tres="gres/gpu=8,gres/gpu:h200=8", tres_used="gres/gpu=6,gres/gpu:h200=2"
    )
    assert READERS["nodes"](row, Unknown()).gpus_used == {"h200": 6}


@pytest.mark.parametrize(
    ("used", "shared"),
    [
        ("gpu:h100:2(IDX:0-1),shard:h100:1(IDX:2)", 1),  # 22.05 counts GPUs here, not shares
        ("gpu:h100:2(IDX:0-1),shard:h100:9(-/8,-/8,8/8,1/8)", 2),
        ("gpu:h100:2(IDX:0-1),shard:9(IDX:2-3)", 2),
        ("gpu:h100:2(IDX:0-1),mps:150(IDX:2-3)", 2),
        ("gpu:h100:2(IDX:0-1),shard:h100:0(IDX:N/A)", 0),
        ("gpu:h100:2(IDX:0-1),nic:4(IDX:0-3)", 0),
    ],
)
def test_a_gpu_given_out_in_shares_is_not_free_and_not_allocated(used: str, shared: int) -> None:
    row = situation.node("n", "MIXED", "gpu:h100:4,shard:h100:32", used)
    told = READERS["nodes"](row, Unknown())
    assert told.gpus_used == {"h100": 2}
    assert told.gpus_shared == ({"h100": shared} if shared else {})
