"""Slurm's small languages: generic resources, TRES, host lists, array tasks, times, numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from gpuwatch_exporters.slurm.read.document import Document, release, told_errors
from gpuwatch_exporters.slurm.read.fields import count, find, moment, number, words
from gpuwatch_exporters.slurm.read.gres import by_type, read_gres
from gpuwatch_exporters.slurm.read.lists import expand, tasks
from gpuwatch_exporters.slurm.read.partitions import oneline_rows, read_partition, seconds
from gpuwatch_exporters.slurm.read.states import CONDITIONS, job_state, node_state
from gpuwatch_exporters.slurm.read.tres import gpus, read_tres, tracks_gpus
from gpuwatch_exporters.slurm.read.unknown import Unknown
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("gpu:h100:8(S:0-1)", [("gpu", "h100", 8, None)]),
        ("gpu:h100:8(IDX:0-7)", [("gpu", "h100", 8, frozenset(range(8)))]),
        ("gpu:h100:0(IDX:N/A)", [("gpu", "h100", 0, frozenset())]),
        ("gpu:h100:5", [("gpu", "h100", 5, None)]),
        ("gpu:(null):4(IDX:0-1,6,7)", [("gpu", "untyped", 4, frozenset({0, 1, 6, 7}))]),
        ("gpu:2", [("gpu", "untyped", 2, None)]),
        ("gpu", [("gpu", "untyped", 1, None)]),
        ("gpu:h100", [("gpu", "h100", 1, None)]),
        ("gres:gpu:h100:2", [("gpu", "h100", 2, None)]),
        ("gres/gpu:h100=2", [("gpu", "h100", 2, None)]),
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:7", [("gpu", "nvidia_h100_80gb_hbm3_1g.10gb", 7, None)]),
        ("shard:h100:3(1/4,2/4,-/4)", [("shard", "h100", 3, frozenset({0, 1}))]),
        ("mps:4K", [("mps", "untyped", 4096, None)]),
        ("gpu:h100:8(CNT:8)", [("gpu", "h100", 8, None)]),
        ("gpu:a:4(S:0),gpu:2,bandwidth:no_consume:4G",
         [("gpu", "a", 4, None), ("gpu", "untyped", 2, None), ("bandwidth", "untyped", 4 * 2**30, None)]),
        ("", []), ("(null)", []), ("N/A", []),
    ],
)  # fmt: skip
def test_generic_resources(told: str, expected: list[tuple[str, str, int, object]]) -> None:
    unknown = Unknown()
    assert [(g.name, g.type, g.count, g.indices) for g in read_gres(told, unknown)] == expected
    assert not +unknown.counts


def test_types_add_up_and_other_resources_do_not_count_as_gpus() -> None:
    assert by_type(read_gres("gpu:a:1,gpu:b:2,gpu:a:3,shard:9", Unknown())) == {"a": 4, "b": 2}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("gres/gpu=8,gres/gpu:h100=8", {"h100": 8}),
        ("gres/gpu:h100=8,gres/gpu=8", {"h100": 8}),
        ("gres/gpu=8", {"untyped": 8}),
        ("gres/gpu:h100=8", {"h100": 8}),
        ("gres/gpu=6,gres/gpu:h200=2", {"h200": 2, "untyped": 4}),
        ("cpu=4,gres/shard=3", {}),
        ("gres/gpu=0", {}),
    ],
)
def test_the_total_of_gpus_is_never_added_to_its_types(told: str, expected: dict[str, int]) -> None:
    assert gpus(read_tres(told, Unknown())) == expected


def test_memory_in_tres_is_bytes() -> None:
    told = {text: read_tres(f"mem={text}", Unknown())["mem"] for text in ("200G", "2000000M", "1562.50G", "1T", "512")}
    assert told == {
        "200G": 200 * 2**30, "2000000M": 2_000_000 * 2**20, "1562.50G": 1562.5 * 2**30, "1T": 2**40, "512": 512 * 2**20,
    }  # fmt: skip


def test_gpus_are_tracked_only_where_tres_names_them() -> None:
    assert tracks_gpus(read_tres("cpu=1,gres/gpu=0", Unknown()))
    assert not tracks_gpus(read_tres("cpu=1,mem=1G", Unknown()))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("", ()),
        ("a", ("a",)),
        ("node[001-003,010],login", ("node001", "node002", "node003", "node010", "login")),
        ("r[1-2]n[08-09]", ("r1n08", "r1n09", "r2n08", "r2n09")),
        ("n[9-11]-ib", ("n9-ib", "n10-ib", "n11-ib")),
    ],
)
def test_host_lists(told: str, expected: tuple[str, ...]) -> None:
    assert expand(told) == expected


@pytest.mark.parametrize("told", ["a[1-", "a[x]", "a[1-999999999]"])
def test_a_text_that_is_no_host_list(told: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|range"):
        expand(told)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("0-9", (10, True)), ("0-9:3,20%2", (5, True)), ("7", (1, True)), ("1-59:2", (30, True)),
        ("1,3-4,...", (3, False)), ("1,3,...%4", (2, False)), ("x", (0, False)), ("", (0, False)),
    ],
)  # fmt: skip
def test_array_tasks(told: str, expected: tuple[int, bool]) -> None:
    assert tasks(told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [("2-00:00:00", 172_800.0), ("12:30:00", 45_000.0), ("UNLIMITED", None), ("", None)],
)
def test_times(told: str, expected: float | None) -> None:
    assert seconds(told) == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (3, 3.0), ("4", 4.0), (0, 0.0), (None, None), (True, None), ("x", None), (-2, None), ([], None),
        (4294967294, None), (4294967295, None), (65535, 65535.0), (18446744073709551614, None),
        ({"set": True, "infinite": False, "number": 7}, 7.0), ({"set": True, "number": 7}, 7.0),
        ({"set": False, "infinite": False, "number": 7}, None), ({"set": True, "infinite": True, "number": 0}, None),
    ],
)  # fmt: skip
def test_numbers_that_are_set_and_finite(held: Any, expected: float | None) -> None:
    assert number(held) == expected
    assert count(held) == expected


def test_fields_of_a_row() -> None:
    assert moment(0) is None
    assert [number(each) for each in (math.nan, math.inf, 1e400, {"set": True, "number": math.nan})] == [None] * 4
    assert find({"a": {"b": 0}}, "x/y", "a/b") == 0
    assert find({"a": 1}, "a/b") is None
    assert words("IDLE+DRAIN") == words(["IDLE", "DRAIN"]) == ("idle", "drain")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("IDLE", "idle"), ("mix", "mixed"), ("IDLE*+NOT_RESPONDING", "not_responding"), ("ALLOCATED+DRAIN", "draining"),
        ("IDLE+DRAIN", "drained"), ("IDLE+DRAIN+COMPLETING", "draining"), ("DOWN+DRAIN", "down"),
        ("MIXED+PLANNED", "planned"), ("IDLE+CLOUD+POWERED_DOWN", "powered_down"), ("IDLE+CLOUD", "idle"),
        ("IDLE+POWERING_UP", "powering_up"), ("MIXED+REBOOT_REQUESTED", "mixed"), ("DOWN+REBOOT_ISSUED", "down"),
        ("IDLE+RESERVED", "reserved"), ("IDLE+MAINTENANCE", "maintenance"), ("IDLE+FAIL", "failing"),
        ("UNKNOWN", "unknown"), ("FUTURE", "future"), ("IDLE+BLOCKED", "held_back"), ("IDLE+INVALID_REG", "down"),
    ],
)  # fmt: skip
def test_the_condition_of_a_node(told: str, expected: str) -> None:
    unknown = Unknown()
    assert node_state(words(told), unknown)[1] == expected
    assert expected in CONDITIONS
    assert not +unknown.counts


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (["running"], "running"), (["completed", "completing"], "completing"), (["pending", "requeued"], "pending"),
        (["running", "configuring"], "running"), (["configuring"], "configuring"), (["out_of_memory"], "out_of_memory"),
        (["requeue_hold"], "pending"),
    ],
)  # fmt: skip
def test_the_state_of_a_job(told: list[str], expected: str) -> None:
    assert job_state(told, Unknown()) == expected


def test_one_line_text_is_rows() -> None:
    text = (
        "PartitionName=all AllowGroups=ALL MaxNodes=4 MaxTime=1-00:00:00 OverSubscribe=FORCE:4 State=UP TotalNodes=2 "
        "TRES=cpu=8,mem=1G\nPartitionName=x MaxNodes=UNLIMITED MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE State=DOWN\n"
    )
    first, second = (read_partition(row, Unknown()) for row in oneline_rows(text))
    assert first is not None
    assert second is not None
    assert (first.name, first.state, first.max_nodes, first.max_seconds) == ("all", "up", 4, 86_400)
    assert (first.oversubscribe, second.oversubscribe) == ("force", "exclusive")
    assert (second.state, second.max_nodes, second.max_seconds) == ("down", None, None)
    assert list(oneline_rows("No reservations in the system\n")) == []


VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=5
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), VALUES), st.lists(VALUES), st.sampled_from([None, 1]))
def test_a_document_read_by_rows_is_the_document(others: dict[str, Any], rows: list[Any], indent: int | None) -> None:
    others.pop("rows", None)
    document = Document(json.dumps({**others, "rows": rows}, indent=indent))
    assert list(document.rows("rows")) == rows
    assert document.rest == others
    assert document.found


@pytest.mark.parametrize("text", ["", "[]", "{", '{"rows"', '{"rows": [1', '{"rows": [1 2]}', '{"rows": [1]', "error"])
def test_half_a_document_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        list(Document(text).rows("rows"))


def test_a_document_without_the_list() -> None:
    document = Document('{"sinfo": [], "errors": [{"error": "no", "description": "why"}, "odd"]}')
    assert list(document.rows("nodes")) == []
    assert not document.found
    assert told_errors(document.rest) == ["why: no", "odd"]
    assert list(Document("{}").rows("nodes")) == []


def test_the_answer_tells_its_schema() -> None:
    old = {"plugin": {"type": "openapi/v0.0.38"}, "Slurm": {"release": "22.05.8"}}
    new = {"plugin": {"data_parser": "data_parser/v0.0.41"}, "slurm": {"release": "24.05.4", "cluster": "north"}}
    assert release({"meta": old}) == ("v0.0.38", "22.05.8", "")
    assert release({"meta": new}) == ("v0.0.41", "24.05.4", "north")
    assert release({}) == ("", "", "")
