"""`gpuwatch mig plan` on empty GPUs, on a recorded cluster and on the generated one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.cli.conftest import Run
from tests.placement.mig.clusters import a_cut, an_instance, on

EMPTY = ("mig", "plan", "--gpu-model", "NVIDIA H100 80GB HBM3", "--gpus", "8")


def recorded(snapshot: ClusterSnapshot, folder: Path) -> Path:
    path = folder / "now.json"
    path.write_text(dump_snapshot(snapshot), encoding="utf-8")
    return path


def a_small_cluster() -> ClusterSnapshot:
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "3g.40gb", 4))
    jobs = [
        on("n1", gpu, "4"),
        a_job("waits", shape=a_shape(1, mig_profile="2g.20gb")),
        a_job("learns", shape=a_shape(1, mig_profile="4g.40gb"), kind="training"),
    ]
    return a_snapshot(a_node("n1", [gpu]), jobs=jobs)


@pytest.mark.parametrize("form", ["table", "wide", "json", "jsonl", "yaml", "csv", "md", "html"])
def test_every_format(form: str, run: Run) -> None:
    ended = run(*EMPTY, "--demand", "1g.10gb=20", "--demand", "3g.40gb=4", "-o", form)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_empty_gpus_of_one_card(run: Run) -> None:
    told = json.loads(run(*EMPTY, "--demand", "1g.10gb=20", "--demand", "mig-3g.40gb=4", "-o", "json").out)
    assert (told["schema"], told["method"], told["unmet"], told["repartitioned"]) == (
        "gpuwatch.mig_plan/1",
        "exact",
        0,
        5,
    )
    made = [spot["profile"] for item in told["items"] for spot in item["create"]]
    assert (made.count("1g.10gb"), made.count("3g.40gb"), len(made)) == (20, 4, 24)
    assert (told["evaluation_id"], told["steps"]) == (None, [])


def test_the_table_joins_equal_layouts_and_names_nodes_together(run: Run, tmp_path: Path) -> None:
    assert "planned GPU 0-3 (enable MIG)" in run(*EMPTY, "--demand", "7g.80gb=4").out
    nodes = [a_node(f"n{at:02}", [a_cut(index) for index in (0, 1, 3)]) for at in range(12)]
    path = recorded(a_snapshot(*nodes), tmp_path)
    table = run("mig", "plan", "--snapshot", path, "--demand", "7g.80gb=36").out
    assert "n[00-11] GPU 0-1,3 each" in table


def test_the_queue_is_the_demand_and_training_is_kept_off(run: Run, tmp_path: Path) -> None:
    path = recorded(a_small_cluster(), tmp_path)
    told = json.loads(run("mig", "plan", "--snapshot", path, "-o", "json").out)
    assert [answer["ask"]["profile"] for answer in told["answers"]] == ["2g.20gb"]
    assert told["skipped"] == [{"subject": "ml/learns", "reason": "training"}]
    (item,) = told["items"]
    assert [(spot["profile"], spot["start"]) for spot in item["create"]] == [("2g.20gb", 2)]
    assert "cordon n1" in told["steps"][0]["run"]
    assert all(step["undo"] for step in told["steps"])
    both = json.loads(run("mig", "plan", "--snapshot", path, "--allow-training", "-o", "json").out)
    assert [answer["ask"]["profile"] for answer in both["answers"]] == ["2g.20gb", "4g.40gb"]
    assert (both["unmet"], both["skipped"]) == (1, [])


def test_what_cannot_be_met_is_told_with_its_reason(run: Run, tmp_path: Path) -> None:
    ended = run("mig", "plan", "--snapshot", recorded(a_small_cluster(), tmp_path), "--demand", "7g.80gb=1")
    assert ended.code == 0
    assert "held instances stand in the way on 1 of the 1 devices" in ended.out
    assert "instance 4 (3g.40gb at 4, held by ml/n1-0-4)" in ended.out
    assert "note: instances without a place: 1" in ended.err


def test_the_table_tells_lines_to_run_and_csv_one_row_an_instance(run: Run, tmp_path: Path) -> None:
    path = recorded(a_small_cluster(), tmp_path)
    table = run("mig", "plan", "--snapshot", path, "--demand", "4g.40gb=1").out
    assert "nvidia-smi mig -i GPU-00000000 -dci -gi 3 && nvidia-smi mig -i GPU-00000000 -dgi -gi 3" in table
    assert "nvidia-smi mig -i GPU-00000000 -cgi 4g.40gb:0 -C" in table
    rows = list(
        csv.DictReader(io.StringIO(run("mig", "plan", "--snapshot", path, "--demand", "4g.40gb=1", "-o", "csv").out))
    )
    assert [(row["action"], row["profile"], row["placement_start"]) for row in rows] == [
        ("delete", "1g.10gb", "0"),
        ("create", "4g.40gb", "0"),
        ("keep", "3g.40gb", "4"),
    ]


def test_a_job_that_waits_for_what_no_card_has_does_not_stop_the_plan(run: Run, tmp_path: Path) -> None:
    jobs = [a_job("odd", shape=a_shape(1, mig_profile="1g.5gb")), a_job("w", shape=a_shape(1, mig_profile="4g.40gb"))]
    path = recorded(a_snapshot(a_node("n1", [a_cut(0)]), jobs=jobs), tmp_path)
    told = json.loads(run("mig", "plan", "--snapshot", path, "-o", "json").out)
    assert [(answer["ask"]["profile"], answer["unmet"]) for answer in told["answers"]] == [
        ("1g.5gb", 1),
        ("4g.40gb", 0),
    ]
    assert "none that the job may use has this profile" in told["answers"][0]["reason"]


def test_a_queue_without_mig_jobs_is_an_answer(run: Run, tmp_path: Path) -> None:
    ended = run("mig", "plan", "--snapshot", recorded(a_snapshot(a_node("n1", [a_cut(0)])), tmp_path))
    assert ended.code == 0
    assert "Nothing is asked for." in ended.out
    assert "name a demand with --demand" in ended.err


def test_the_generated_cluster_has_a_job_that_waits_for_a_slice(run: Run) -> None:
    told = json.loads(run("mig", "plan", "--trace", "demo", "-o", "json", "-q").out)
    assert told["unmet"] == 0
    assert [answer["ask"]["jobs"] for answer in told["answers"]] == [["vision/slice-3g"]]
    assert told["left_out"]["training"] > 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--demand", "1g.10gb"), 2, "--demand cannot be '1g.10gb'"),
        (("--demand", "1g.10gb=-3"), 2, "--demand cannot be '1g.10gb=-3'"),
        (("--demand", "1g.10gb=0"), 2, "a number above 0"),
        (("--demand", "=3"), 2, "--demand cannot be"),
        (("--demand", "1g.18gb=1"), 1, "no card here has a MIG profile called 1g.18gb"),
        (("--demand", "9g.10gb=1"), 1, "1g.10gb+me"),
        ((), 2, "--gpus needs one --gpu-model and at least one --demand"),
        (("--demand", "1g.10gb=1", "--gpu-model", "A100-80"), 2, "--gpus needs one --gpu-model"),
        (("--demand", "1g.10gb=1", "--trace", "demo"), 2, "reads no cluster"),
        (("--demand", "1g.10gb=1", "--include-busy"), 2, "reads no cluster"),
        (("--demand", "1g.10gb=9999999"), 2, "cannot be planned"),
    ],
)
def test_wrong_input_is_told_in_three_lines(args: tuple[str, ...], code: int, said: str, run: Run) -> None:
    ended = run(*EMPTY, *args)
    assert ended.code == code
    assert said in ended.err
    assert ended.out == ""
    assert len(ended.err.splitlines()) <= 3


def test_cards_and_clusters_that_cannot_be_cut(run: Run, tmp_path: Path) -> None:
    ended = run("mig", "plan", "--gpu-model", "T4", "--gpus", "2", "--demand", "1g.10gb=1")
    assert ended.code == 1
    assert "MIG cannot cut a T4" in ended.err
    for snapshot in (a_snapshot(), a_snapshot(a_node("n1", 4, "T4"))):
        ended = run("mig", "plan", "--snapshot", recorded(snapshot, tmp_path), "--demand", "1g.10gb=1")
        assert ended.code == 1
        assert "there is no GPU here that MIG can cut" in ended.err
    path = recorded(a_small_cluster(), tmp_path)
    for narrow in (("--gpu-model", "A30"), ("--pool", "elsewhere")):
        ended = run("mig", "plan", "--snapshot", path, *narrow, "--demand", "1g.10gb=1")
        assert ended.code == 1
        assert narrow[1] in ended.err
