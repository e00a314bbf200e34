"""Each command on an evaluation built by hand: options, exit codes, and what goes to which stream."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from pathlib import Path

import pytest

from gpuwatch import wiring
from gpuwatch.errors import SourceError
from gpuwatch.model.codec import load_snapshot
from gpuwatch.model.snapshot import SourceHealth
from tests.cli.conftest import Run, Wired
from tests.render.evaluations import a_partial_evaluation, an_evaluation
from tests.render.reports import SNAPSHOT

ANALYSES = (
    ("recommend",),
    ("fragmentation",),
    ("forecast",),
    ("doctor",),
    ("doctor", "--reconcile"),
    ("demo", "--once"),
)


def given(command: tuple[str, ...]) -> tuple[str, ...]:
    return command if command[0] == "demo" else (*command, "--trace", "demo")


@pytest.mark.parametrize("command", ANALYSES)
def test_quiet_json_is_only_json(command: tuple[str, ...], run: Run, wired: Wired) -> None:
    ended = run(*given(command), "-q", "-o", "json")
    assert ended.code == 0
    assert json.loads(ended.out)["evaluation_id"] == wired.evaluation.id
    assert ended.err == ""


@pytest.mark.parametrize("command", ANALYSES)
@pytest.mark.parametrize("form", ["table", "wide", "jsonl", "yaml", "csv", "md", "html"])
def test_every_format_of_every_command(command: tuple[str, ...], form: str, run: Run, wired: Wired) -> None:
    ended = run(*given(command), "-o", form)
    assert ended.code == 0
    assert ended.out
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize("command", ANALYSES)
def test_a_partial_evaluation_is_printed_noted_and_11_under_strict(
    command: tuple[str, ...], run: Run, wired: Wired
) -> None:
    wired.evaluation = a_partial_evaluation()
    ended = run(*given(command))
    assert ended.code == 0
    assert "note: partial data: source prometheus did not answer (timeout)" in ended.err
    assert "note: partial data: stage mix failed (ValueError: boom)" in ended.err
    assert run(*given(command), "--strict").code == 11


def test_strict_is_content_with_whole_data(run: Run, wired: Wired) -> None:
    assert run("recommend", "--trace", "demo", "--strict").code == 0


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--fail-on", "critical"), 10),
        (("--fail-on", "critical", "--kind", "idle_held"), 0),
        (("--fail-on", "info", "--kind", "idle_held"), 10),
        (("--fail-on", "critical", "--top", "1"), 10),
        (("--fail-on", "critical", "--pool", "train"), 0),
        ((), 0),
    ],
)
def test_fail_on_looks_at_what_matches_not_at_what_is_shown(
    args: tuple[str, ...], code: int, run: Run, wired: Wired
) -> None:
    assert run("recommend", "--trace", "demo", *args).code == code


def test_findings_outrank_partial_data(run: Run, wired: Wired) -> None:
    wired.evaluation = an_evaluation(sources=(SourceHealth(name="p", kind="prometheus", ok=False),))
    assert run("recommend", "--trace", "demo", "--strict").code == 11
    assert run("recommend", "--trace", "demo", "--strict", "--fail-on", "info").code == 10


@pytest.mark.parametrize(
    ("args", "subjects"),
    [
        (("--min-severity", "warning"), ["ml/sleepy", "n7"]),
        (("--sort", "severity"), None),
        (("--top", "1"), ["ml/sleepy"]),
        (("--sort", "severity", "--top", "1"), ["n7"]),
        (("--node", "n7"), ["n7"]),
        (("--tenant", "ml", "--gpu-model", "H100-80"), ["ml/sleepy"]),
    ],
)
def test_filters_and_order(args: tuple[str, ...], subjects: list[str] | None, run: Run, wired: Wired) -> None:
    rows = list(csv.DictReader(io.StringIO(run("recommend", "--trace", "demo", "-o", "csv", *args).out)))
    assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
    if subjects is None:
        assert [row["severity"] for row in rows] == ["critical", "warning", "info"]
    else:
        assert [row["subject"] for row in rows] == subjects


def test_nothing_matching_is_fine_and_said(run: Run, wired: Wired) -> None:
    ended = run("recommend", "--trace", "demo", "--node", "elsewhere", "-o", "json")
    assert ended.code == 0
    assert json.loads(ended.out)["items"] == []
    assert "note: no recommendation matches" in ended.err


def test_commands_are_shown_with_their_undo_only_on_demand(run: Run, wired: Wired) -> None:
    assert "kubectl" not in run("recommend", "--trace", "demo").out
    text = run("recommend", "--trace", "demo", "--show-commands").out
    assert "kubectl scale deploy/ml/sleepy --replicas=0\n# undo: kubectl scale" in text


@pytest.mark.parametrize("top", [(), ("--top", "1")])
def test_groups_add_up_what_matches_not_what_is_shown(top: tuple[str, ...], run: Run, wired: Wired) -> None:
    groups = json.loads(run("recommend", "--trace", "demo", "--group-by", "pool", "-o", "json", *top).out)["groups"]
    assert [(group["name"], group["recommendations"]) for group in groups] == [("train", 2), ("infer", 1)]


@pytest.mark.parametrize(
    ("args", "choices"),
    [
        (("recommend", "-o", "xml"), "csv, html, json, jsonl, md, table, wide, yaml"),
        (("recommend", "--min-severity", "huge"), "info, warning, critical"),
        (("recommend", "--fail-on", "huge"), "info, warning, critical"),
        (("recommend", "--sort", "luck"), "value, gpus, gpu-hours, cost, confidence, severity"),
        (("recommend", "--group-by", "luck"), "rule, tenant, pool, node, gpu-model, severity"),
        (("recommend", "--kind", "luck"), "idle_held"),
        (("place", "--gpus", "1", "--policy", "luck"), "best_fit, dot_product, fgd"),
    ],
)
def test_an_unknown_value_lists_the_choices(args: tuple[str, ...], choices: str, run: Run, wired: Wired) -> None:
    ended = run(*args, "--trace", "demo")
    assert ended.code == 2
    assert ended.out == ""
    assert choices in ended.err.splitlines()[1]
    assert wired.specs == []


def test_forecasts_can_be_chosen(run: Run, wired: Wired) -> None:
    document = json.loads(run("forecast", "--trace", "demo", "--pool", "infer", "-o", "json").out)
    assert [item["target"]["pool"] for item in document["items"]] == ["infer"]
    assert "no demand target" in run("forecast", "--trace", "demo", "--kind", "none").err


def test_the_demo_summary_holds_every_part(run: Run, wired: Wired) -> None:
    text = run("demo", "--once").out
    for part in ("GPUs counted", "Fragmentation", "What fits now", "Demand forecast", "Recommendations"):
        assert f"\n{part}" in text
    assert wired.specs[0].kind == "generated"


def test_place_answers_on_the_snapshot(run: Run, wired: Wired) -> None:
    ended = run("place", "--trace", "demo", "--gpus", "1", "--cpu", "500m", "--memory", "4GiB", "-o", "json")
    document = json.loads(ended.out)
    assert ended.code == 0
    assert document["feasible"] is True
    assert {each["node"] for choice in document["choices"] for each in choice["assignments"]} == {"n1"}
    refused = run("place", "--trace", "demo", "--gpus", "8", "--gpu-model", "NVIDIA L40S")
    assert refused.code == 0
    assert "It does not fit as asked." in refused.out
    assert "note: nothing has room" in refused.err


@pytest.mark.parametrize(
    "args",
    [
        ("--gpus", "2", "--milligpu", "500"),
        ("--gpus", "1", "--milligpu", "500", "--mig-profile", "1g.10gb"),
        ("--gpus", "0", "--mig-profile", "1g.10gb"),
        ("--gpus", "1", "--cpu", "many"),
        ("--gpus", "1", "--memory", "-3"),
        ("--gpus", "-1"),
        ("--gpus", "1", "--milligpu", "0"),
        ("--gpus", "0"),
        ("--cpu", "4"),
        ("--gpus", "1", "--gpu-memory", "much"),
        ("--gpus", "0", "--cpu", "4", "--gpu-memory", "8GiB"),
        ("--gpus", "1", "--mig-profile", "1g.10gb", "--gpu-memory", "8GiB"),
        ("--gpus", "1", "--gpu-memory", "8GiB", "--model-size", "7B"),
        ("--model-size", "70"),
        ("--model-size", "7B", "--precision", "fp3"),
        ("--model-size", "7B", "--purpose", "play"),
        ("--model-size", "7B", "--milligpu", "500"),
        ("--gpus", "1", "--purpose", "training"),
    ],
)
def test_place_refuses_shapes_that_cannot_be(args: tuple[str, ...], run: Run, wired: Wired) -> None:
    ended = run("place", "--trace", "demo", *args)
    assert (ended.code, ended.out) == (2, "")
    assert wired.specs == []


def test_snapshot_record_and_show(run: Run, wired: Wired, tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    recorded = run("snapshot", "record", "--trace", "demo", "--output-file", path)
    assert (recorded.code, recorded.out) == (0, "")
    assert load_snapshot(path.read_text()) == SNAPSHOT
    shown = run("snapshot", "show", path, "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert [(row["node"], float(row["held_gpus"])) for row in rows] == [("n1", 1.5), ("n2", 1.0), ("n3", 0.0)]
    assert load_snapshot(run("snapshot", "record", "--trace", "demo", "-q").out) == SNAPSHOT


def test_snapshot_show_names_path_and_line_of_a_fault(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(
        '{\n "schema_version": "gpuwatch.snapshot/1",\n "cluster": 7,\n "taken_at": "2026-03-02T12:00:00Z"\n}'
    )
    ended = run("snapshot", "show", path)
    assert (ended.code, ended.out) == (1, "")
    assert "line 3, $.cluster" in ended.err


def test_doctor_reconcile_names_each_trap_and_its_gpus(run: Run, wired: Wired) -> None:
    document = json.loads(run("doctor", "--trace", "demo", "--reconcile", "-o", "json").out)
    traps = {trap["id"]: trap["milligpu"] for trap in document["traps"]}
    assert traps["replicas"] == 3000
    assert traps["pending"] == 8000
    assert document["waterfall"][0]["installed"] == 64.0
    assert "traps" not in json.loads(run("doctor", "--trace", "demo", "-o", "json").out)


def test_doctor_says_what_to_do_about_what_is_missing(run: Run, wired: Wired) -> None:
    wired.evaluation = a_partial_evaluation()
    missing = json.loads(run("doctor", "--trace", "demo", "-o", "json").out)["missing"]
    assert {"what": "source prometheus: timeout", "todo": "see its address"} in missing
    assert all(gap["todo"] for gap in missing)


def test_doctor_asks_the_sources_of_a_configuration_what_they_know(
    run: Run, wired: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "url": "http://p:9090",
        "dialects": ["dcgm"],
        "missing": {"power": ["DCGM_FI_DEV_POWER_USAGE"]},
        "targets_down": ["n1:9400"],
        "history_hours": None,
        "failures": {"pods": "timeout"},
    }
    silent = SourceError("p2 did not answer", code="timeout")
    monkeypatch.setattr(wiring, "describe_sources", lambda spec: [("prometheus:p", told), ("prometheus:p2", silent)])
    document = json.loads(run("doctor", "--config", "c.toml", "-o", "json").out)
    assert document["servers"] == {"prometheus:p": told}
    missing = {gap["what"]: gap["todo"] for gap in document["missing"]}
    assert missing["prometheus:p: power"] == "scrape any of: DCGM_FI_DEV_POWER_USAGE"
    assert "prometheus:p: target n1:9400 is down" in missing
    text = run("doctor", "--config", "c.toml").out
    assert "What prometheus:p knows" in text
    assert "pods (timeout)" in text


def test_forecast_models_are_asked_of_the_evaluation(run: Run, wired: Wired) -> None:
    assert run("forecast", "--trace", "demo", "--model", "lstm", "--model", "arima", "--model", "lstm").code == 0
    assert run("forecast", "--trace", "demo").code == 0
    assert [spec.forecast_models for spec in wired.specs] == [("lstm", "arima"), None]


def test_an_unknown_forecast_model_is_refused_with_the_known_ones(run: Run, wired: Wired) -> None:
    ended = run("forecast", "--trace", "demo", "--model", "ltsm")
    assert (ended.code, ended.out, wired.specs) == (2, "", [])
    assert "no forecaster is called 'ltsm'" in ended.err
    assert "choose from: arima, fourier_ar, last_value, lstm, median" in ended.err


def test_a_forecast_model_does_nothing_with_a_server(run: Run) -> None:
    ended = run("forecast", "--server", "http://127.0.0.1:1", "--model", "lstm")
    assert ended.code == 2
    assert "--model does nothing with --server" in ended.err


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "need torch: pip install 'gpuwatch-stack[lstm]' (in a checkout '.[lstm]'), then gpuwatch forecast "),
        (object(), "are off; switch them on with: gpuwatch forecast "),
    ],
)
def test_the_demo_says_in_one_line_how_to_see_lstm_forecasts(
    run: Run, wired: Wired, monkeypatch: pytest.MonkeyPatch, found: object, said: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: found if name == "torch" else real(name, *a))
    assert f"note: LSTM forecasts {said}--trace demo --model lstm\n" in run("demo", "--once").err
    assert "LSTM" not in run("demo", "--once", "-q").err
