"""Reading openb: what a good file gives, and that every kind of bad one is refused with its place."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpuwatch.errors import InputError
from gpuwatch.model.units import MIB
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import TRACE_START, TRACES, empty_snapshot, read_trace, workloads_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,1024,0,\nn2,32000,2048,1,G2\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
    "p1,6000,12288,1,460,V100M32|T4|V100M32,BE,Failed,427061,12902960,\n"
    "p2,2000,1024,0,0,,Burstable,Pending,5,6,\n"
)


def folder(tmp_path: Path, nodes: str = NODES, pods: str = PODS) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(nodes)
    (tmp_path / "openb_pod_list_default.csv").write_text(pods)
    return tmp_path


def test_reads_nodes_and_jobs_in_file_order(tmp_path):
    trace = read_openb(folder(tmp_path))
    assert [(n.name, len(n.gpus), n.cpu_allocatable_millicores) for n in trace.nodes] == [
        ("n0", 2, 64000),
        ("n1", 0, 96000),
        ("n2", 1, 32000),
    ]
    assert trace.nodes[0].gpus[1].model == "P100"
    assert trace.nodes[2].gpus[0].model == "G2"
    first, second, third = trace.jobs
    assert (first.id, first.kind, first.phase, first.submitted_at) == ("p0", "inference", "pending", TRACE_START)
    assert second.shape.gpu_models == ("T4", "V100-32")
    assert (second.kind, second.shape.milligpu, second.shape.memory_bytes) == ("batch", 460, 12288 * MIB)
    assert (third.kind, third.shape.gpus, third.shape.milligpu) == ("unknown", 0, 0)
    assert all(len(job.members) == 1 and job.members[0].node is None for job in trace.jobs)


def test_the_empty_snapshot_holds_the_demand_and_no_job(tmp_path):
    trace = read_openb(folder(tmp_path))
    snapshot = empty_snapshot(trace)
    assert snapshot.jobs == ()
    assert sum(entry.count for entry in snapshot.arrivals) == 3
    assert (snapshot.taken_at - TRACE_START).total_seconds() == 427061
    assert empty_snapshot(trace) == snapshot


def test_the_short_lists_have_five_columns(tmp_path):
    trace = read_openb(folder(tmp_path, pods="name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,1,8,1000\n"))
    assert trace.jobs[0].kind == "unknown"
    assert trace.jobs[0].submitted_at is None
    assert empty_snapshot(trace).taken_at == TRACE_START


def test_gzip_reads_the_same(tmp_path):
    plain = read_openb(folder(tmp_path))
    (tmp_path / "openb_pod_list_default.csv").unlink()
    (tmp_path / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(PODS.encode()))
    assert read_openb(tmp_path) == plain


BAD_PODS = {
    "not a number": ("p1,6000,12288,1,460,V100M32|T4|V100M32", "p1,nan,12288,1,460,", ":3: column cpu_milli"),
    "negative": ("p1,6000", "p1,-1", ":3: column cpu_milli is -1"),
    "huge": ("p1,6000,12288", "p1,6000,999999999999999", ":3: column memory_mib"),
    "fraction": ("p1,6000", "p1,6000.5", ":3: column cpu_milli"),
    "digits of another script": ("p1,6000", "p1,٦٠٠٠", ":3: column cpu_milli"),
    "empty cell": ("p1,6000", "p1,", ":3: column cpu_milli is empty"),
    "share of several": ("16384,1,1000", "16384,2,500", ":2: column gpu_milli is 500, outside 1000..1000"),
    "share without a device": ("1024,0,0", "1024,0,100", ":4: column gpu_milli is 100, outside 0..0"),
    "no share of one": ("16384,1,1000", "16384,1,0", ":2: column gpu_milli is 0"),
    "more than one device": ("16384,1,1000", "16384,1,1001", ":2: column gpu_milli is 1001"),
    "doubled name": ("p1,", "p0,", ":3: column name repeats 'p0' of line 2"),
    "unknown class": ("BE", "VIP", ":3: column qos is 'VIP'"),
    "hole in the models": ("V100M32|T4|", "V100M32||", ":3: column gpu_spec"),
    "negative time": ("427061", "-3", ":3: column creation_time"),
    "missing column": ("num_gpu,", "", "csv:1: lacks column 'num_gpu'"),
    "unknown column": ("gpu_spec,", "gpu_specs,", "csv:1: has the unknown column 'gpu_specs'"),
    "doubled column": ("scheduled_time", "qos", "csv:1: doubles column 'qos'"),
    "short row": ("0,12537496,0", "0", ":2: 9 cells under 11 columns"),
    "open quote": ("p2,2000", 'p2,"2000', "cannot be read beyond line 3"),
}


@pytest.mark.parametrize(("old", "new", "told"), BAD_PODS.values(), ids=BAD_PODS)
def test_bad_pods_are_refused_with_their_place(tmp_path, old, new, told):
    assert old in PODS
    with pytest.raises(InputError) as caught:
        read_openb(folder(tmp_path, pods=PODS.replace(old, new, 1)))
    assert "openb_pod_list_default.csv" in caught.value.what
    assert told in caught.value.what
    assert caught.value.todo


BAD_NODES = {
    "no model": ("2,P100", "2,", ":2: column model is empty"),
    "model without devices": ("1024,0,", "1024,0,T4", ":3: column model names 'T4'"),
    "no CPU": ("n0,64000", "n0,0", ":2: column cpu_milli is 0"),
    "doubled": ("n2,", "n0,", ":4: column sn repeats 'n0' of line 2"),
    "absurd count": ("262144,2", "262144,2000", ":2: column gpu is 2000"),
}


@pytest.mark.parametrize(("old", "new", "told"), BAD_NODES.values(), ids=BAD_NODES)
def test_bad_nodes_are_refused_with_their_place(tmp_path, old, new, told):
    with pytest.raises(InputError) as caught:
        read_openb(folder(tmp_path, nodes=NODES.replace(old, new, 1)))
    assert told in caught.value.what


@pytest.mark.parametrize(("text", "told"), [("", "is empty"), (PODS.splitlines()[0] + "\n", "has no data rows")])
def test_empty_files_are_refused(tmp_path, text, told):
    with pytest.raises(InputError, match=told):
        read_openb(folder(tmp_path, pods=text))


def test_damaged_gzip_is_refused(tmp_path):
    folder(tmp_path)
    (tmp_path / "openb_pod_list_default.csv").unlink()
    whole = gzip.compress((PODS + "".join(f"q{i},{i * 7919 % 1000},1,1,1000,,BE,,,,\n" for i in range(5000))).encode())
    target = tmp_path / "openb_pod_list_default.csv.gz"
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for content in (whole[: len(whole) // 2], bytes(damaged), b"not gzip at all", b""):
        target.write_bytes(content)
        with pytest.raises(InputError, match=r"default\.csv\.gz"):
            read_openb(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    folder(tmp_path)
    (tmp_path / "openb_pod_list_default.csv").write_bytes(PODS.encode() + b"\xff\xfe,1,1,1,1000,,,,,,\n")
    with pytest.raises(InputError, match="cannot be read beyond line"):
        read_openb(tmp_path)


def test_an_unknown_list_names_the_known_ones(tmp_path):
    with pytest.raises(InputError) as caught:
        read_openb(folder(tmp_path), workload="cpu999")
    assert caught.value.todo == "choose one of: default"
    with pytest.raises(InputError, match="node list"):
        read_openb(folder(tmp_path), nodes="nowhere")
    with pytest.raises(InputError, match="no node list"):
        read_openb(tmp_path / "absent")


def test_a_folder_is_read_by_the_format_that_recognizes_it(tmp_path):
    assert read_trace(folder(tmp_path)) == TRACES.get("openb").read(tmp_path) == read_openb(tmp_path)
    (tmp_path / "openb_node_list_gpu_node.csv").unlink()  # still one of this format, and what it lacks is named
    with pytest.raises(InputError, match="node list"):
        read_trace(tmp_path)
    for other in (tmp_path / "absent", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(InputError, match="no folder of a known trace") as caught:
            read_trace(other)
        assert "openb_node_list" in caught.value.tried


def test_a_folder_tells_its_job_lists(tmp_path):
    folder(tmp_path)
    (tmp_path / "openb_pod_list_cpu050.csv.gz").write_bytes(gzip.compress(PODS.encode()))
    (tmp_path / "openb_pod_list_notes.txt").write_text("no list")
    assert workloads_of(tmp_path) == ("cpu050", "default")
    with pytest.raises(InputError, match="no folder of a known trace"):
        workloads_of(tmp_path / "absent")


@pytest.mark.traces
def test_the_published_lists(traces):
    trace = read_openb(traces / "openb")
    assert (len(trace.nodes), sum(len(n.gpus) for n in trace.nodes), len(trace.jobs)) == (1213, 6212, 8152)
    assert sum(n.cpu_allocatable_millicores or 0 for n in trace.nodes) == 107_018_000
    assert sum(job.shape.milligpu for job in trace.jobs) == pytest.approx(6_086_800, abs=100)
    assert len(read_openb(traces / "openb", nodes="all_node").nodes) == 1523
    for path in sorted((traces / "openb").glob("openb_pod_list_*")):
        workload = path.name.removeprefix("openb_pod_list_").split(".")[0]
        assert read_openb(traces / "openb", workload).jobs
