"""The comparison with published results: what is read, what differs, what is beyond a bar, and who leads."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.lead import lead_sections, leads, verdicts
from bench.published import MEASURES, POLICIES, differences, missed, ours, published
from gpuwatch.placement.replay_summary import Spread, summarize
from tests.placement.replay_runs import a_run

ROOT = Path(__file__).parents[2]


def expected(folder: Path, rows: dict[tuple[str, str, int], Callable[[int], float]]) -> Path:
    """The two published tables; a row's value at each percent is given by its function."""
    folder.mkdir()
    for name in ("analysis_allo_discrete", "analysis_frag_ratio_discrete"):
        lines = ["workload,sc_policy,tune,seed," + ",".join(map(str, range(131)))]
        lines += [
            f"openb_pod_list_{workload},{policy},1.3,{seed}," + ",".join(str(at(percent)) for percent in range(131))
            for (workload, policy, seed), at in rows.items()
        ]
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_published_means_by_our_names(tmp_path: Path) -> None:
    folder = expected(
        tmp_path / "expected",
        {
            ("default", "06-FGD", 42): lambda percent: percent / 2,
            ("default", "06-FGD", 43): lambda percent: percent / 2 + 1,
            ("cpu050", "02-DotProd", 42): lambda percent: 7,
        },
    )
    found = published(folder)
    assert {key: told.mean for key, told in found["default", "fgd"].items()} == {
        "allocation_100": 50.5,
        "allocation_130": 65.5,
        "fragment_40": 20.5,
        "fragment_80": 40.5,
        "fragment_95": 48.0,
    }
    assert found["default", "fgd"]["fragment_40"].deviation == pytest.approx(0.5**0.5)
    assert {told.mean for told in found["cpu050", "dot_product"].values()} == {7}
    assert len(found) == 2


def test_our_means_in_percent() -> None:
    runs = [
        a_run("fgd", 42, allocated=(0.90, 0.92), fragments=(0.1, None, 0.9)),
        a_run("fgd", 43, allocated=(0.94, 0.96), fragments=(0.3, None, 0.7)),
    ]
    found = ours(summarize(runs))["default", "fgd"]
    assert {key: told.mean for key, told in found.items()} == {
        "allocation_100": pytest.approx(92),
        "allocation_130": pytest.approx(94),
        "fragment_40": pytest.approx(20),
        "fragment_95": pytest.approx(80),
    }
    assert found["allocation_100"].deviation == pytest.approx(8**0.5)


def told(mean: float, deviation: float | None = 1.0, runs: int = 10) -> Spread:
    return Spread(mean=mean, deviation=deviation, runs=runs)


def beyond(policy: str = "fgd", **own: float) -> list[str]:
    """Keys of what is missed against means of 50; an own mean of 0 is missing."""
    theirs = {measure.key: told(50.0) for measure in MEASURES}
    means = {measure.key: own.get(measure.key, 50.0) for measure in MEASURES}
    mine = {key: told(mean) for key, mean in means.items() if mean}
    return [measure.key for _, measure in missed(differences({("w", policy): mine}, {("w", policy): theirs}))]


def test_the_standard_error_tells_what_chance_makes() -> None:
    (found,) = differences(
        {("w", "fgd"): {"a": told(95.5, 3.0, 9), "b": told(1, None, 1)}},
        {("w", "fgd"): {"a": told(95.0, 4.0, 4), "b": told(1)}},
    ).values()
    assert (found["a"].points, found["a"].error) == (pytest.approx(0.5), pytest.approx(5**0.5))
    assert found["b"].error is None


def test_each_bar_is_held_on_both_sides_and_fgd_to_its_own() -> None:
    assert beyond() == []
    for measure in MEASURES:
        for sign in (1, -1):
            for policy, bar in (("fgd", measure.bar_of_fgd), ("random", measure.bar)):
                assert beyond(policy, **{measure.key: 50 + sign * (bar - 0.001)}) == []
                assert beyond(policy, **{measure.key: 50 + sign * (bar + 0.001)}) == [measure.key]


def test_a_mean_that_is_missing_is_beyond_its_bar() -> None:
    assert beyond(allocation_130=0) == ["allocation_130"]


def test_a_cell_that_only_one_side_has_is_left_out() -> None:
    assert differences({("other", "fgd"): {"allocation_100": told(1)}}, {("w", "fgd"): {}}) == {}


def summaries(at_100: float, at_130: float, eight: int, workloads: int = 2):
    runs = []
    for at in range(workloads):
        name = f"w{at}"
        runs += [
            a_run("fgd", workload=name, allocated=(0.90, 0.91), admitted={"1": (100, 90), "8": (100, 80)}),
            a_run("best_fit", workload=name, allocated=(0.85, 0.86), admitted={"1": (100, 80), "8": (100, 95)}),
            a_run("own", workload=name, allocated=(at_100, at_130), admitted={"1": (100, 95), "8": (100, eight)}),
        ]
    return summarize(runs)


def test_the_lead_and_the_distance_to_the_best_published_policy() -> None:
    first, _ = leads(summaries(0.92, 0.925, 90), "own", "fgd", list(POLICIES.values()))
    assert (first.at_100, first.at_130) == (pytest.approx(2.0), pytest.approx(1.5))
    assert first.admission == {"1": pytest.approx(5.0), "8": pytest.approx(10.0)}
    assert (first.largest, first.best) == (pytest.approx(-5.0), "best_fit")


def test_without_large_jobs_nothing_is_said_of_them() -> None:
    runs = [a_run(policy, admitted={"share": (9, 9)}) for policy in ("fgd", "own")]
    (lead,) = leads(summarize(runs), "own", "fgd", list(POLICIES.values()))
    assert (lead.largest, lead.best) == (None, None)
    assert verdicts([lead])[-1][1]


@pytest.mark.parametrize(
    ("made", "met"),
    [
        ((0.92, 0.92, 95), [True, True, True, True]),
        ((0.92, 0.90, 95), [False, False, False, True]),  # ahead at 100% alone is not ahead
        ((0.8995, 0.92, 95), [False, False, True, True]),  # within 0.1 point behind
        ((0.92, 0.92, 93), [True, True, True, False]),
    ],
)
def test_every_bar_of_the_lead(made: tuple[float, float, int], met: list[bool]) -> None:
    found = leads(summaries(*made), "own", "fgd", list(POLICIES.values()))
    assert [fine for _, fine in verdicts(found)] == met
    sections, fine = lead_sections(summaries(*made), "own", "fgd", list(POLICIES.values()))
    assert fine is all(met)
    assert len(sections) == 2


def test_fourteen_of_seventeen_are_enough() -> None:
    good, bad = summaries(0.92, 0.92, 95, 14), summaries(0.8995, 0.9095, 95, 17)[14 * 3 :]
    found = leads((*good, *bad), "own", "fgd", list(POLICIES.values()))
    assert [fine for _, fine in verdicts(found)] == [True, True, True, True]
    assert len(found) == 17


@pytest.mark.traces
@pytest.mark.slow
def test_two_seeds_come_out_as_published(traces: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    command = [sys.executable, str(ROOT / "bench" / "published.py"), "--trace", str(traces), "--seeds", "2"]
    command += [
        "--workload",
        "default",
        "--policy",
        "fgd",
        "--policy",
        "best_fit",
        "--jobs",
        "1",
        "--resume",
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 means of policy and workload compared; 0 beyond a bar." in done.stdout
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 4
