"""Snapshots survive the round trip exactly, and a fault is told with its path and line."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpuwatch.errors import InputError
from gpuwatch.model.cluster import Activity, Gpu, MigInstance, Node, Telemetry
from gpuwatch.model.codec import dump_snapshot, line_of, load_snapshot, read_snapshot, snapshot_json_schema
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job, Member, ShapeCount
from gpuwatch.model.snapshot import ClusterSnapshot, Finding, SourceHealth
from tests.builders import a_job, a_node, a_snapshot, busy

RATIO = st.none() | st.floats(0, 1)
WORD = st.text(min_size=1, max_size=8)


def gpus() -> st.SearchStrategy[Gpu]:
    telemetry = st.builds(
        Telemetry, utilization_ratio=RATIO, power_watts=RATIO, missing=st.dictionaries(WORD, WORD, max_size=2)
    )
    activity = st.builds(
        Activity,
        window_seconds=st.just(1800),
        samples=st.integers(0, 99),
        samples_expected=st.just(60),
        peak_ratio=RATIO,
    )
    instance = st.builds(
        MigInstance, id=WORD, profile=st.just("1g.10gb"), compute_slices=st.just(1), memory_slices=st.just(1)
    )
    return st.builds(
        Gpu,
        index=st.just(0),
        uuid=st.none() | WORD,
        health=st.sampled_from(["healthy", "unhealthy", "unknown"]),
        mig_instances=st.lists(instance, max_size=2).map(tuple),
        telemetry=st.none() | telemetry,
        activity=st.none() | activity,
    )


def snapshots() -> st.SearchStrategy[ClusterSnapshot]:
    node = st.builds(
        Node, name=WORD, gpus=st.lists(gpus(), max_size=1).map(tuple), labels=st.dictionaries(WORD, WORD, max_size=2)
    )
    shape = st.builds(DemandShape, gpus=st.integers(0, 8), gpu_models=st.lists(WORD, max_size=2).map(tuple))
    share = st.builds(DeviceShare, gpu_index=st.integers(0, 7), milligpu=st.integers(0, 1000))
    member = st.builds(Member, name=WORD, node=st.none() | WORD, shares=st.lists(share, max_size=2).map(tuple))
    job = st.builds(
        Job, id=WORD, name=WORD, shape=shape, members=st.lists(member, max_size=2).map(tuple),
        submitted_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    )  # fmt: skip
    return st.builds(
        ClusterSnapshot,
        cluster=WORD,
        taken_at=st.datetimes(timezones=st.just(UTC)),
        nodes=st.lists(node, max_size=3, unique_by=lambda n: n.name).map(tuple),
        jobs=st.lists(job, max_size=3, unique_by=lambda j: j.id).map(tuple),
        arrivals=st.lists(st.builds(ShapeCount, shape=shape, count=st.integers(0, 9)), max_size=2).map(tuple),
        sources=st.lists(st.builds(SourceHealth, name=WORD, kind=WORD, ok=st.booleans()), max_size=1).map(tuple),
        findings=st.lists(
            st.builds(Finding, code=WORD, severity=st.just("info"), subject=WORD, detail=WORD), max_size=1
        ).map(tuple),
    )


@settings(max_examples=100)
@given(snapshots())
def test_round_trip_is_exact(snapshot: ClusterSnapshot) -> None:
    text = dump_snapshot(snapshot)
    assert load_snapshot(text) == snapshot
    assert dump_snapshot(load_snapshot(text)) == text


@settings(max_examples=20)
@given(snapshots())
def test_documents_satisfy_the_published_schema(snapshot: ClusterSnapshot) -> None:
    Draft202012Validator(json.loads(snapshot_json_schema())).validate(json.loads(dump_snapshot(snapshot)))


def full() -> str:
    node = a_node("n1", 2)
    return dump_snapshot(a_snapshot(node, jobs=[a_job("j", "n1", [0])]))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"cpu_allocatable_millicores": 24000', '"cpu_allocatable_millicores": "24000"', "$.nodes[0].cpu_allocatable"),
        ('"pool": "default"', '"pool": "default", "colour": "red"', "$.nodes[0].colour"),
        ('"health": "healthy"', '"health": "fine"', "$.nodes[0].gpus[0].health"),
        ('"gpu_index": 0', '"gpu_index": 0.5', "$.jobs[0].members[0].shares[0].gpu_index"),
        ('"cpu_allocatable_millicores": 24000', '"cpu_allocatable_millicores": -1', "$.nodes[0].cpu_allocatable"),
        ('"milligpu": 1000', '"milligpu": 1001', "$.jobs[0].members[0].shares[0].milligpu"),
        ('"milligpu_per_gpu": 1000', '"milligpu_per_gpu": 0', "$.jobs[0].shape.milligpu_per_gpu"),
        ('"cpu_millicores": 4000', '"cpu_millicores": 1000000000000000000', "$.jobs[0].shape.cpu_millicores"),
        ('"taken_at": "2026-03-02T12:00:00Z"', '"taken_at": "yesterday"', "$.taken_at"),
    ],
)
def test_a_fault_names_path_and_line(old: str, new: str, path: str) -> None:
    text = full()
    assert old in text
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(InputError) as err:
        load_snapshot(text.replace(old, new, 1), "cluster.json")
    assert f"line {line}, {path}" in err.value.what
    assert "cluster.json" in err.value.what


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "<html>", '{"schema_version": "gpuwatch.snapshot/2"}', "{} trailing"]
)
def test_not_a_snapshot_at_all(text: str) -> None:
    with pytest.raises(InputError, match=r"x\.json is not"):
        load_snapshot(text, "x.json")


def test_what_may_be_negative_is_read() -> None:
    cold = a_node("n1", [Gpu(index=0, telemetry=Telemetry(temperature_celsius=-3.0))])
    snapshot = a_snapshot(cold, jobs=[a_job("j", priority=-10)])
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot


def test_several_devices_are_whole_ones() -> None:
    text = dump_snapshot(a_snapshot(jobs=[a_job("j", shape=DemandShape(gpus=2, milligpu_per_gpu=500))]))
    with pytest.raises(InputError, match="several devices"):
        load_snapshot(text)


def test_nan_is_refused() -> None:
    node = a_node("n1", [Gpu(index=0, activity=busy(peak=0.5))])
    text = dump_snapshot(a_snapshot(node)).replace('"peak_ratio": 0.5', '"peak_ratio": NaN')
    with pytest.raises(InputError):
        load_snapshot(text)


@pytest.mark.parametrize(
    "doubled",
    [
        a_snapshot(a_node("n"), a_node("n")),
        a_snapshot(jobs=[a_job("j"), a_job("j")]),
        a_snapshot(a_node("n", [Gpu(index=0), Gpu(index=0)])),
    ],
)
def test_doubled_names_are_refused(doubled: ClusterSnapshot) -> None:
    with pytest.raises(InputError, match="occurs twice"):
        load_snapshot(dump_snapshot(doubled))


def test_a_missing_file_is_told(tmp_path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.json"):
        read_snapshot(tmp_path / "none.json")


def test_line_of_a_missing_value_is_its_parent() -> None:
    text = '{\n "a": [\n  1,\n  {"b": "x\\"}"}\n ]\n}'
    assert line_of(text, ("a", 1, "b")) == 4
    assert line_of(text, ("a", 1, "nothing")) == 4
    assert line_of(text, ("a", 7)) == 2


def test_times_keep_their_zone() -> None:
    snapshot = a_snapshot(taken_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert load_snapshot(dump_snapshot(snapshot)).taken_at.tzinfo is not None
