"""`gpuwatch rebalance` and `gpuwatch plan verify`, on a small cluster in a file."""

from __future__ import annotations

import csv
import ctypes
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.cli.chatter import without_chatter
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.plan_codec import read_plan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.rebalance.apply import apply_steps
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.cli.conftest import Run

SINGLE = a_shape(1, cpu=1000)
CLUSTER = a_snapshot(
    a_node("n0", 8),
    a_node("n1", 8),
    jobs=[
        a_job("single", "n0", [0], shape=SINGLE, owner="Deployment/web"),
        *(a_job(f"k{at}", "n1", [at], shape=SINGLE, protected=True) for at in range(3)),
        a_job("big", shape=a_shape(8, cpu=8000)),
    ],
)


def written(folder: Path, snapshot: ClusterSnapshot = CLUSTER, name: str = "now.json") -> Path:
    path = folder / name
    path.write_text(dump_snapshot(snapshot), encoding="utf-8")
    return path


@pytest.fixture
def now(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def plan(now: Path, tmp_path: Path, run: Run) -> Path:
    path = tmp_path / "plan.json"
    assert run("rebalance", "--snapshot", now, "--max-moves", 1, "-o", "json", "--output-file", path).code == 0
    return path


def test_the_table_tells_steps_price_and_gain(now: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", now, "--max-moves", 1, "--show-commands")
    assert ended.code == 0
    for told in ("1 moves (of 1 allowed", "8 GPUs go to jobs that wait", "n0 GPU 0", "waits", "protected", "kubectl"):
        assert told in ended.out
    assert ended.err == ""


def test_json_is_one_document_with_steps_and_what_was_left_alone(plan: Path) -> None:
    document = json.loads(plan.read_text(encoding="utf-8"))
    assert document["schema"] == "gpuwatch.plan/1"
    assert [(each["kind"], each["job"]) for each in document["items"]] == [("move", "ml/single"), ("start", "ml/big")]
    assert document["skipped"] == [{"reason": "protected", "jobs": 3, "example": "ml/k0"}]
    assert document["started_milligpu"] == 8000
    assert document["items"][0]["commands"]


@pytest.mark.parametrize("form", ["table", "wide", "json", "jsonl", "yaml", "csv", "md", "html"])
def test_every_format(form: str, now: Path, plan: Path, run: Run) -> None:
    assert run("rebalance", "--snapshot", now, "-o", form).out
    assert run("plan", "verify", plan, "--snapshot", now, "-o", form).out


def test_csv_has_one_row_a_step(now: Path, run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("rebalance", "--snapshot", now, "--max-moves", 1, "-o", "csv").out)))
    assert [(row["kind"], row["source"], row["target"], row["target_gpus"]) for row in rows][1] == (
        "start",
        "",
        "n0",
        "0 1 2 3 4 5 6 7",
    )
    assert rows[1]["started_milligpu"] == "8000"
    assert rows[0]["step_gpu_hours_lost"] == "2.0"


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--protect", "ml/single"), "protected"),
        (("--protect", "Deployment/*"), "protected"),
        (("--tenant", "other"), "other_tenant"),
        (("--pool", "other"), "other_pool"),
        (("--max-gpu-hours", "1.5"), "protected"),
        (("--max-per-owner", "0"), "protected"),
        (("--max-per-tenant", "0"), "protected"),
        (("--max-moves", "0"), "protected"),
        (("--horizon-hours", "0.1"), "protected"),
    ],
)
def test_limits_are_obeyed(option: tuple[str, ...], reason: str, now: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", now, *option, "-o", "json")
    assert ended.code == 0
    document = json.loads(ended.out)
    assert document["items"] == []
    assert document["reason"]
    assert reason in {each["reason"] for each in document["skipped"]}
    assert "nothing to do" in ended.err


@pytest.mark.parametrize("given", ["many", "-3", "101%", "nan%", "5 %%", ""])
def test_a_number_of_moves_that_is_none(given: str, now: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", now, f"--max-moves={given}")
    assert ended.code == 2
    assert "--max-moves" in ended.err


def test_an_empty_cluster_is_an_answer(tmp_path: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", written(tmp_path, a_snapshot()))
    assert ended.code == 0
    assert "no GPU in this cluster" in ended.out


def test_a_plan_stands_until_its_world_moves(plan: Path, now: Path, tmp_path: Path, run: Run) -> None:
    assert run("plan", "verify", plan, "--snapshot", now).code == 0
    done = apply_steps(CLUSTER, read_plan(plan).steps[:1])
    ended = run("plan", "verify", plan, "--snapshot", written(tmp_path, done, "later.json"), "-o", "json")
    assert ended.code == 0
    assert [each["verdict"] for each in json.loads(ended.out)["items"]] == ["done", "ok"]
    taken = replace(CLUSTER, jobs=(*CLUSTER.jobs, a_job("new", "n0", [5], shape=SINGLE)))
    ended = run("plan", "verify", plan, "--snapshot", written(tmp_path, taken, "taken.json"))
    assert ended.code == 10
    assert "target_taken" in ended.out
    assert "no longer stands" in ended.out


def test_the_previous_plan_is_kept(plan: Path, now: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", now, "--max-moves", 1, "--previous", plan, "-o", "json")
    assert json.loads(ended.out)["method"] == "previous"
    assert json.loads(ended.out)["items"] == json.loads(plan.read_text(encoding="utf-8"))["items"]


def test_reading_a_plan_gives_what_was_written(plan: Path, now: Path, run: Run) -> None:
    again = run("rebalance", "--snapshot", now, "--max-moves", 1, "-o", "json").out
    assert again == plan.read_text(encoding="utf-8")
    assert [step.order for step in read_plan(plan).steps] == [1, 2]


def broken(document: dict, fault: str) -> str:
    if fault == "other schema":
        document["schema"] = "gpuwatch.snapshot/1"
    elif fault == "unknown field":
        document["surprise"] = 1
    elif fault == "wrong type":
        document["items"][0]["order"] = "first"
    elif fault == "missing":
        del document["items"][0]["target"]
    elif fault == "no state before":
        document["jobs_before"] = []
    elif fault == "two steps":
        document["items"][1]["job"] = document["items"][0]["job"]
    elif fault == "other order":
        document["items"].reverse()
    elif fault == "torn lists":
        document["nodes_before"][0]["gpu_models"] = []
    elif fault == "no steps":
        del document["items"]
    text = json.dumps(document)
    return text[: len(text) // 2] if fault == "torn" else text


@pytest.mark.parametrize(
    "fault",
    [
        *("other schema", "unknown field", "wrong type", "missing", "no state before", "two steps", "other order"),
        *("torn lists", "no steps", "torn"),
    ],
)
def test_a_file_that_is_no_plan_is_told(fault: str, plan: Path, now: Path, run: Run) -> None:
    plan.write_text(broken(json.loads(plan.read_text(encoding="utf-8")), fault), encoding="utf-8")
    for command in (("plan", "verify", plan), ("rebalance", "--previous", plan)):
        ended = run(*command, "--snapshot", now)
        assert ended.code == 1
        assert "plan.json" in ended.err
        assert "to do: " in ended.err
        assert "Traceback" not in ended.err


def test_a_plan_of_another_cluster(plan: Path, tmp_path: Path, run: Run) -> None:
    elsewhere = written(tmp_path, replace(CLUSTER, cluster="elsewhere"), "elsewhere.json")
    ended = run("plan", "verify", plan, "--snapshot", elsewhere)
    assert ended.code == 10
    assert "other_cluster" in ended.out
    assert "None of it can be done" in ended.out
    ended = run("rebalance", "--snapshot", elsewhere, "--previous", plan)
    assert ended.code == 1
    assert "elsewhere" in ended.err
    assert "leave out --previous" in ended.err


@pytest.mark.parametrize("option", ["--max-gpu-hours", "--horizon-hours", "--least-gain"])
@pytest.mark.parametrize("given", ["inf", "nan", "1e300", "-1"])
def test_bounds_that_are_no_numbers(option: str, given: str, now: Path, run: Run) -> None:
    ended = run("rebalance", "--snapshot", now, f"{option}={given}", "-o", "json")
    assert ended.code == 2
    assert option in ended.err


def test_commands_close_the_source_first(now: Path, run: Run) -> None:
    out = run("rebalance", "--snapshot", now, "--max-moves", 1, "--show-commands").out
    lines = [line for line in out.splitlines() if line.startswith("kubectl")]
    assert (lines[0], lines[-1]) == ("kubectl cordon n0", "kubectl uncordon n0")
    assert "the scheduler chooses" in out
    assert "nothing to run; ml/big is expected" in out


def test_a_plan_that_is_not_there(now: Path, run: Run) -> None:
    ended = run("plan", "verify", now.parent / "none.json", "--snapshot", now)
    assert ended.code == 1
    assert "cannot read" in ended.err


def test_what_compiled_code_prints_stays_out_of_the_data(capfd: pytest.CaptureFixture[str]) -> None:
    with without_chatter():
        ctypes.CDLL(None).puts(b"a solver's line")
    print("data")
    assert capfd.readouterr().out == "data\n"
