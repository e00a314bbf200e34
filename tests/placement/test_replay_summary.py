"""Means, deviations and flags over runs written down by hand."""

from __future__ import annotations

from statistics import mean

import pytest

from gpuwatch.placement.replay_summary import Spread, Starved, mean_curves, size_order, spread, summarize
from tests.placement.replay_runs import a_run


def test_mean_and_deviation_of_the_sample() -> None:
    assert spread([0.9, 0.92, 0.97]) == Spread(
        mean=pytest.approx(0.93), deviation=pytest.approx(0.0360555, abs=1e-6), runs=3
    )
    assert spread([0.9]) == Spread(mean=0.9, deviation=None, runs=1)
    assert spread([None, 0.9, None, 0.7]) == Spread(mean=0.8, deviation=pytest.approx(0.1414214, abs=1e-6), runs=2)
    assert spread([None]) is None
    assert spread([]) is None


def test_one_summary_for_each_policy_and_workload_as_they_come() -> None:
    runs = [
        a_run(policy, seed, workload, allocated=(0.01 * seed, None))
        for workload in ("b", "a")
        for policy in ("fgd", "best_fit")
        for seed in (50, 60)
    ]
    summaries = summarize(runs)
    assert [(each.workload, each.policy) for each in summaries] == [
        ("b", "fgd"),
        ("b", "best_fit"),
        ("a", "fgd"),
        ("a", "best_fit"),
    ]
    first = summaries[0]
    assert first.runs == 2
    assert first.allocation_ratio_at_100 == Spread(
        mean=pytest.approx(0.55), deviation=pytest.approx(0.0707107, abs=1e-6), runs=2
    )
    assert first.allocation_ratio_at_130 is None  # no stream came so far
    assert [(each.arrived_percent, each.ratio and each.ratio.mean) for each in first.fragment] == [
        (40, 0.2),
        (80, 0.4),
        (95, 0.9),
    ]
    assert first.seconds.mean == 1.0
    assert summarize([]) == ()


def test_admission_is_a_mean_of_ratios_of_runs_that_saw_the_size() -> None:
    runs = [
        a_run(seed=1, admitted={"8": (4, 1), "share": (10, 10), "cpu": (0, 0)}),
        a_run(seed=2, admitted={"8": (1, 1), "2": (5, 0)}),
    ]
    (summary,) = summarize(runs)
    told = {each.size: each.ratio and (each.ratio.mean, each.ratio.runs) for each in summary.admission}
    assert told == {"cpu": None, "share": (1.0, 1), "2": (0.0, 1), "8": (0.625, 2)}
    assert list(told) == ["cpu", "share", "2", "8"]


def test_sizes_sort_by_devices_not_by_letters() -> None:
    assert sorted(["16", "8", "share", "2", "cpu", "1"], key=size_order) == ["cpu", "share", "1", "2", "8", "16"]


def flags(*runs) -> list[Starved | None]:
    return [each.starved for each in summarize(runs)]


def test_a_gain_paid_for_by_large_jobs_is_flagged() -> None:
    careful = a_run("careful", allocated=(0.90, 0.91), admitted={"1": (100, 90), "8": (100, 96)})
    greedy = a_run("greedy", allocated=(0.95, 0.96), admitted={"1": (100, 99), "8": (100, 80)})
    starved = Starved(size="8", behind_ratio=pytest.approx(0.16), best_policy="careful")
    assert flags(careful, greedy) == [None, starved]
    assert flags(greedy, careful) == [starved, None]
    assert flags(greedy) == [None]  # there is nobody to compare with


@pytest.mark.parametrize(
    ("allocated", "admitted", "flagged"),
    [
        ((0.95, 0.96), 95, False),  # one point behind is no starving
        ((0.95, 0.96), 93, True),
        ((0.85, 0.86), 80, False),  # it gains nothing: that is only a worse policy
        ((0.95, None), 80, True),  # judged where both can be
    ],
)
def test_what_is_flagged(allocated: tuple[float, float | None], admitted: int, flagged: bool) -> None:
    careful = a_run("careful", allocated=(0.90, 0.91), admitted={"8": (100, 96)})
    other = a_run("other", allocated=allocated, admitted={"8": (100, admitted)})
    assert [each is not None for each in flags(careful, other)] == [False, flagged]


def test_each_workload_is_judged_by_its_own_rivals_and_its_own_largest_size() -> None:
    runs = [
        a_run("careful", workload="a", allocated=(0.9, 0.9), admitted={"4": (10, 10), "8": (0, 0)}),
        a_run("greedy", workload="a", allocated=(0.95, 0.95), admitted={"4": (10, 5), "8": (0, 0)}),
        a_run("greedy", workload="b", allocated=(0.95, 0.95), admitted={"8": (10, 1)}),
    ]
    assert [each and each.size for each in flags(*runs)] == [None, "4", None]


def test_without_large_jobs_there_is_nothing_to_starve() -> None:
    runs = [
        a_run("careful", allocated=(0.9, 0.9), admitted={"cpu": (10, 10), "share": (10, 10)}),
        a_run("greedy", allocated=(0.95, 0.95), admitted={"cpu": (10, 2), "share": (10, 1)}),
        a_run("empty", allocated=(0.99, 0.99), admitted={}),
    ]
    assert flags(*runs) == [None, None, None]


def test_mean_curves_take_each_point_from_the_runs_that_have_it() -> None:
    runs = [
        a_run(seed=1, allocated=(0.9, 0.94), fragments=(0.2, None, 0.8)),
        a_run(seed=2, allocated=(0.8, None), fragments=(0.4, None, None)),
    ]
    (curve,) = mean_curves(runs)
    assert [at.arrived_percent for at in curve.points] == [40, 80, 95, 100, 130]
    assert [at.fragment_ratio for at in curve.points] == [pytest.approx(0.3), None, 0.8, 1.0, 1.0]
    assert [at.allocation_ratio for at in curve.points][3:] == [pytest.approx(mean((0.9, 0.8))), 0.94]
