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
from gpuwatch.placement.replay_summary import summarize
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
    assert published(folder) == {
        ("default", "fgd"): {
            "allocation_100": 50.5,
            "allocation_130": 65.5,
            "fragment_40": 20.5,
            "fragment_80": 40.5,
            "fragment_95": 48.0,
        },
        ("cpu050", "dot_product"): {measure.key: 7 for measure in MEASURES},
    }


def test_our_means_in_percent() -> None:
    runs = [
        a_run("fgd", 42, allocated=(0.90, 0.92), fragments=(0.1, None, 0.9)),
        a_run("fgd", 43, allocated=(0.94, 0.96), fragments=(0.3, None, 0.7)),
    ]
    assert ours(summarize(runs)) == {
        ("default", "fgd"): {
            "allocation_100": pytest.approx(92),
            "allocation_130": pytest.approx(94),
            "fragment_40": pytest.approx(20),
            "fragment_95": pytest.approx(80),
        }
    }


def known(**off: float) -> dict:
    return {("default", "fgd"): {measure.key: 50.0 for measure in MEASURES} | off}


def beyond(policy: str = "fgd", **own: float) -> list[tuple[str, float | None]]:
    means = {measure.key: 50.0 for measure in MEASURES} | own
    theirs = {("default", policy): {measure.key: 50.0 for measure in MEASURES}}
    apart = differences({("default", policy): {key: mean for key, mean in means.items() if mean}}, theirs)
    return [(measure.key, points) for _, measure, points in missed(apart)]


def test_each_bar_is_held_on_both_sides_and_fgd_to_its_own() -> None:
    assert beyond() == []
    for measure in MEASURES:
        for sign in (1, -1):
            for policy, bar in (("fgd", measure.bar_of_fgd), ("random", measure.bar)):
                assert beyond(policy, **{measure.key: 50 + sign * (bar - 0.001)}) == []
                told = beyond(policy, **{measure.key: 50 + sign * (bar + 0.001)})
                assert [key for key, _ in told] == [measure.key]


def test_a_mean_that_is_missing_is_beyond_its_bar() -> None:
    assert beyond(allocation_130=0) == [("allocation_130", None)]


def test_a_cell_that_only_one_side_has_is_left_out() -> None:
    assert differences({("other", "fgd"): {"allocation_100": 1.0}}, known()) == {}


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
