"""What a replay with departures prints of runs written down by hand."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from gpuwatch.model.churn import ChurnPoint, ChurnRun, ChurnSize
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.summary import mean_churn_curves, summarize_churn
from gpuwatch.render.report import FORMATS, Report, Style
from gpuwatch.render.reports.churn import churn_report


def a_size(size: str, arrived: int = 0, started: int = 0, wait: float | None = None) -> ChurnSize:
    return ChurnSize(
        size=size,
        arrived=arrived,
        started=started,
        finished=started,
        preempted=0,
        still_waiting=arrived - started,
        wait_p50_seconds=None if wait is None else wait / 2,
        wait_p95_seconds=wait,
        wait_max_seconds=None if wait is None else 2 * wait,
    )


def a_run(policy: str, seed: int, used: float, wait: float, fragment: float | None = 0.5) -> ChurnRun:
    return ChurnRun(
        trace="openb",
        workload="default",
        policy=policy,
        seed=seed,
        times="drawn",
        jobs_without_time=0,
        jobs_left_out=0,
        offered_load_ratio=0.9,
        span_seconds=36_000.0,
        warm_up_seconds=10_800.0,
        initial=10,
        arrived=100,
        finished=60,
        running=20,
        waiting=15,
        never_started=12,
        refused=5,
        utilization_ratio=used,
        fragment_ratio=fragment,
        waiting_milligpu=32_000.0,
        waiting_milligpu_at_end=40_000,
        stuck_milligpu=16_500.0,
        preempted_jobs=4,
        preemptions=6,
        lost_gpu_hours=12.5,
        curve=tuple(
            ChurnPoint(
                time_seconds=3_600.0 * part,
                utilization_ratio=used * part / 10,
                fragment_ratio=fragment,
                waiting_milligpu=1000.0 * part,
                stuck_milligpu=500.0 * part,
            )
            for part in range(1, 11)
        ),
        sizes=(a_size("cpu", 10, 10, 0.0), a_size("1", 50, 50, wait), a_size("8", 20, 5, 10 * wait), a_size("gang")),
        seconds=1.25,
    )


RUNS = (
    a_run("careful", 42, 0.90, 600.0),
    a_run("careful", 43, 0.92, 1200.0),
    a_run("greedy", 42, 0.95, 60.0, fragment=None),
    a_run("greedy", 43, 0.95, 60.0),
)


def report(settings: ChurnSettings | None = None, runs=RUNS) -> Report:
    return churn_report(runs, summarize_churn(runs), mean_churn_curves(runs), settings or ChurnSettings())


def as_text(form: str, **given) -> str:
    return FORMATS.get(form)(report(**given), Style(wide=form == "wide"))


def test_the_tables_tell_means_over_the_seeds() -> None:
    rows = [line.split() for line in as_text("table").splitlines() if line.startswith("default ")]
    assert rows[0] == ["default", "careful", "2", "91.00", "1.41", "50.0", "32.0", "16.5", "4.0", "12.5", "1.25"]
    assert rows[1] == ["default", "greedy", "2", "95.00", "0.00", "50.0", "32.0", "16.5", "4.0", "12.5", "1.25"]
    assert rows[2] == ["default", "careful", "0.0", "15.0", "150.0"]  # p95 in minutes: CPU only, 1 GPU, 8 GPUs
    assert rows[4] == ["default", "careful", "100.0", "100.0", "25.0"]


def test_a_size_of_which_nobody_came_is_left_out_of_tables_and_told_with_a_reason() -> None:
    assert "gang" not in as_text("table")
    told = json.loads(as_text("json"))
    assert {"size": "gang", "reason": "no_arrival_of_this_size"}.items() <= told["skipped"][0].items()
    assert {each["reason"] for each in told["skipped"]} == {"no_arrival_of_this_size", "nothing_idle"}


def test_the_document_has_settings_summaries_and_every_run() -> None:
    told = json.loads(as_text("json"))
    assert (told["schema"], told["protocol"]) == ("gpuwatch.replay/1", "churn")
    assert told["settings"]["queue"] == "backfill"
    assert [(each["policy"], each["seed"]) for each in told["items"]] == [(run.policy, run.seed) for run in RUNS]
    assert told["items"][0]["curve"][0]["stuck_milligpu"] == 500.0
    careful = told["summaries"][0]
    assert careful["utilization_ratio"]["mean"] == pytest.approx(0.91)
    assert careful["sizes"][2]["size"] == "8"
    assert careful["sizes"][2]["arrived"] == 40


def test_csv_has_one_line_a_run_with_raw_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(as_text("csv"))))
    assert len(rows) == 4
    assert rows[0]["utilization_ratio"] == "0.9"
    assert rows[0]["wait_p95_seconds_8"] == "6000.0"
    assert rows[0]["wait_p95_seconds_gang"] == ""
    assert rows[2]["fragment_ratio"] == ""
    assert all(None not in row and None not in row.values() for row in rows)


def test_the_page_draws_a_curve_for_each_measure_and_policy() -> None:
    page = as_text("html")
    assert page.count("<svg") == 4
    assert "default: stuck, in GPUs, over time, % of 10.0 h" in page


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ChurnSettings(),
            "run for log-normal times (median 600 s, sigma 1.9) and leave; they ask for 90% of the GPU time",
        ),
        (ChurnSettings(times="durations", load=1.1), "as long as the trace tells and leave; they ask for 110%"),
        (ChurnSettings(times="trace"), "arrive, run and leave as the trace tells."),
        (ChurnSettings(queue="fifo"), "no waiting job starts before the ones ahead of it; nobody has to leave"),
        (ChurnSettings(priorities=False), "The queue is ordered by arrival:"),
        (ChurnSettings(preemption=True), "a job that has to leave for a higher one loses its work"),
        (ChurnSettings(preemption=True, checkpoint_seconds=60), "up to the last of its checkpoints, 60 s apart"),
    ],
)
def test_it_says_what_was_done(settings: ChurnSettings, said: str) -> None:
    assert said in as_text("table", settings=settings)


def test_it_says_how_many_jobs_tell_no_time() -> None:
    runs = (replace(RUNS[0], times="trace", jobs_without_time=7, jobs_left_out=3),)
    text = as_text("table", settings=ChurnSettings(times="trace"), runs=runs)
    assert "default: 7 jobs of the list do not tell all their times: 4 run for durations drawn" in text
    assert "3 are left out" in text
