"""What a replay prints of runs written down by hand."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

from gpuwatch.placement.replay_summary import mean_curves, summarize
from gpuwatch.render.report import FORMATS, Report, Style
from gpuwatch.render.reports.replay import replay_report
from tests.placement.replay_runs import a_run

RUNS = (
    a_run("careful", 42, allocated=(0.90, 0.91), admitted={"cpu": (10, 10), "1": (50, 45), "8": (10, 9)}),
    a_run("careful", 43, allocated=(0.92, None), admitted={"cpu": (10, 10), "1": (50, 45), "8": (10, 10)}),
    a_run("greedy", 42, allocated=(0.95, 0.96), fragments=(0.1, None, 0.8), admitted={"1": (50, 49), "8": (10, 5)}),
    a_run("greedy", 43, allocated=(0.95, 0.96), admitted={"1": (50, 49), "8": (10, 5)}),
)


def report() -> Report:
    return replay_report(RUNS, summarize(RUNS), mean_curves(RUNS))


def as_text(form: str) -> str:
    return FORMATS.get(form)(report(), Style(wide=form == "wide"))


def test_the_tables_tell_means_deviations_and_who_pays() -> None:
    text = as_text("table")
    rows = [line.split() for line in text.splitlines() if line.startswith("default ")]
    assert rows[0] == ["default", "careful", "2", "91.00", "1.41", "91.00", "-", "20.0", "40.0", "90.0", "1.00"]
    assert rows[1] == ["default", "greedy", "2", "95.00", "0.00", "96.00", "0.00", "15.0", "40.0", "85.0", "1.00"]
    assert rows[2] == ["default", "careful", "100.0", "90.0", "95.0"]
    assert rows[3] == ["default", "greedy", "-", "98.0", "50.0"]
    told = "default: greedy allocates more than careful, and admits 45.0 points fewer of the jobs of 8 GPUs."
    assert told in text
    assert "Means over 2 seeds (42 to 43)" in text


def test_one_run_is_no_mean() -> None:
    text = FORMATS.get("table")(replay_report(RUNS[:1], summarize(RUNS[:1]), mean_curves(RUNS[:1])), Style())
    assert "Seed 42; " in text
    assert "eans over" not in text


def test_a_list_of_which_no_job_came_is_told() -> None:
    nobody = replace(a_run(allocated=(None, None), admitted={}), arrivals=0, curve=())
    runs = (nobody, replace(nobody, policy="best_fit"))
    text = FORMATS.get("table")(replay_report(runs, summarize(runs), mean_curves(runs)), Style())
    assert "default: no job came in 2 of its runs." in text
    assert "Admitted by job size" not in text


def test_wide_adds_every_deviation_and_some_points_of_the_curves() -> None:
    text = as_text("wide")
    assert [
        "default",
        "careful",
        "2",
        "91.00",
        "1.41",
        "91.00",
        "-",
        "20.0",
        "0.0",
        "40.0",
        "0.0",
        "90.0",
        "0.0",
        "1.00",
        "0.00",
    ] in [line.split() for line in text.splitlines()]
    assert "default: fragment of what is idle" in text


def test_the_document_has_one_item_for_each_run() -> None:
    document = json.loads(as_text("json"))
    assert document["schema"] == "gpuwatch.replay/1"
    assert [(item["policy"], item["seed"]) for item in document["items"]] == [
        ("careful", 42),
        ("careful", 43),
        ("greedy", 42),
        ("greedy", 43),
    ]
    first = document["items"][0]
    assert first.keys() >= {
        *("policy", "workload", "seed", "arrivals", "allocation_ratio_at_100", "allocation_ratio_at_130"),
        *("fragmentation_curve", "admission", "seconds"),
    }
    assert first["fragmentation_curve"][0]["arrived_percent"] == 40
    assert first["admission"][2] == {
        "size": "8",
        "arrived": 10,
        "admitted": 9,
        "arrived_in_all": 15,
        "admitted_in_all": 9,
    }
    careful = document["summaries"][0]
    assert (careful["policy"], careful["allocation_ratio_at_100"]["runs"]) == ("careful", 2)
    assert document["summaries"][1]["starved"]["best_policy"] == "careful"


def test_what_is_missing_is_null_and_has_its_reason() -> None:
    document = json.loads(as_text("json"))
    assert document["items"][1]["allocation_ratio_at_130"] is None
    own = {"workload": "default", "policy": "careful", "seed": 43}
    assert document["skipped"] == [
        {**own, "measure": "allocation_ratio_at_130", "reason": "no_arrival_at_this_point"},
        {**own, "policy": "greedy", "seed": 42, "measure": "fragment_ratio_at_80", "reason": "nothing_idle"},
    ]


def test_csv_has_raw_numbers_of_every_run() -> None:
    rows = list(csv.DictReader(io.StringIO(as_text("csv"))))
    assert [row["seed"] for row in rows] == ["42", "43", "42", "43"]
    assert rows[0]["allocation_ratio_at_100"] == "0.9"
    assert rows[1]["allocation_ratio_at_130"] == ""
    assert rows[0]["admission_ratio_8"] == "0.9"
    assert rows[2]["admission_ratio_cpu"] == ""  # no such job came
    assert rows[2]["fragment_ratio_at_80"] == ""


def test_the_page_draws_both_curves_of_each_workload() -> None:
    page = as_text("html")
    assert page.count("<svg") == 2
    assert "default: allocated" in page


def test_no_run_is_a_report_too() -> None:
    empty = replay_report((), (), ())
    for form in FORMATS.ids():
        assert FORMATS.get(form)(empty, Style()) is not None
    assert json.loads(FORMATS.get("json")(empty, Style()))["items"] == []
