"""Small scenes whose outcome anybody can work out: who starts when, who has to leave, what is told of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpuwatch.model.churn import ChurnRun, ChurnSize
from gpuwatch.model.jobs import Job, Member
from gpuwatch.placement.churn.replay import churn_field, replay_churn
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.traces.trace_format import TRACE_START, JobTrace
from tests.builders import a_job, a_node, a_shape


def came(second: int, seconds: int, gpus: int, **fields) -> tuple[Job, int]:
    """A job that arrives at `second` and has `seconds` of work."""
    job = a_job(f"{second:03}-{gpus}", shape=a_shape(gpus, cpu=0), **fields)
    return replace(job, submitted_at=TRACE_START + timedelta(seconds=second)), seconds


def gang(timed: tuple[Job, int], members: int) -> tuple[Job, int]:
    return replace(timed[0], members=tuple(Member(name=f"m{at}") for at in range(members))), timed[1]


def play(nodes: list[int], jobs: list[tuple[Job, int]], until: int, **settings) -> ChurnRun:
    """The scene up to second `until`, when a job comes that no cluster takes. Nodes by their number of GPUs."""
    last = came(until, 1, 999)
    trace = JobTrace(
        nodes=tuple(a_node(f"n{at}", gpus) for at, gpus in enumerate(nodes)),
        jobs=tuple(job for job, _ in (*jobs, last)),
        workload="scene",
        duration_seconds={job.id: seconds for job, seconds in (*jobs, last)},
    )
    chosen = ChurnSettings(times="trace", warm_up=0.0, **settings)
    return replay_churn(churn_field(trace), "best_fit", seed=1, settings=chosen, compiled=False)


def size(run: ChurnRun, label: str) -> ChurnSize:
    return next(each for each in run.sizes if each.size == label)


BLOCKED = [came(0, 100, 6), came(10, 50, 8), came(20, 30, 1), came(30, 10, 2)]  # on one node of 8


def test_backfill_lets_small_jobs_pass_a_large_one():
    run = play([8], BLOCKED, until=200)
    assert (run.arrived, run.finished, run.running, run.waiting, run.refused) == (5, 4, 0, 0, 1)
    assert size(run, "1").wait_max_seconds == 0
    assert size(run, "2").wait_max_seconds == 20  # beside the 6 and the 1 only one GPU is free until second 50
    assert size(run, "8").wait_max_seconds == 90


def test_strict_order_lets_nobody_pass():
    run = play([8], BLOCKED, until=300, queue="fifo")
    assert size(run, "8").wait_max_seconds == 90
    assert size(run, "1").wait_max_seconds == 130  # after the 8, which runs from 100 to 150
    assert size(run, "2").wait_max_seconds == 120


def test_a_look_ends_after_the_depth():
    passed = play([8], [came(0, 100, 8), came(1, 10, 8), came(2, 10, 7), came(3, 10, 1)], until=99, depth=2)
    assert passed.never_started == 3


def test_waiting_and_stuck_gpus_are_told_apart():
    """Two nodes with 4 idle each: 8 are idle by their sum, and 8 on one node are what waits."""
    run = play([8, 8], [came(0, 500, 4), came(1, 500, 5), came(2, 10, 8), came(3, 10, 8)], until=200)
    assert run.waiting_milligpu_at_end == 16_000
    assert run.curve[-1].waiting_milligpu == 16_000
    assert run.curve[-1].stuck_milligpu == 0  # 7 are idle
    run = play([8, 8], [came(0, 500, 4), came(1, 500, 5), came(1, 5, 4), came(2, 500, 3), came(3, 10, 4)], until=200)
    assert size(run, "4").wait_max_seconds == 3  # until the short one has gone


def test_jobs_that_would_fit_by_their_sum_are_stuck():
    run = play([4, 4], [came(0, 500, 3), came(1, 500, 3), came(2, 10, 2), came(3, 10, 2)], until=400)
    assert run.curve[-1].utilization_ratio == pytest.approx(6 / 8)
    assert run.curve[-1].waiting_milligpu == 4000
    assert run.curve[-1].stuck_milligpu == 2000  # 2 are idle: one of the two jobs could have them


def test_preemption_frees_one_node_not_a_number_of_gpus():
    """Five of eight GPUs on one node, by one old job; two on the other, by a younger one. An 8 needs one node."""
    batch = {"kind": "batch"}
    jobs = [came(0, 900, 5, **batch), came(50, 900, 7, **batch), came(100, 10, 8, kind="inference")]
    run = play([8, 8], jobs, until=130, preemption=True)
    assert run.preemptions == 1
    assert size(run, "7").preempted == 1  # 7 GPUs x 50 s are less work than 5 x 100 s
    assert run.lost_gpu_hours == pytest.approx(7 * 50 / 3600)
    assert size(run, "8").wait_max_seconds == 0


def test_whoever_can_be_spared_stays():
    """Cheapest first are a 1 and a 2; the 4 that is needed then makes the 1 and the 2 needless."""
    batch = {"kind": "batch"}
    jobs = [came(0, 900, 4, **batch), came(90, 900, 2, **batch), came(95, 900, 1, **batch)]
    run = play([8], [*jobs, came(100, 10, 5, kind="inference")], until=105, preemption=True)
    assert {each.size: each.preempted for each in run.sizes if each.preempted} == {"4": 1}


def test_a_checkpoint_saves_the_work_up_to_it():
    jobs = [came(0, 100, 8, kind="batch"), came(70, 10, 8, kind="inference")]
    run = play([8], jobs, until=300, preemption=True, checkpoint_seconds=30.0)
    assert run.lost_gpu_hours == pytest.approx(8 * 10 / 3600)  # 70 s done, 60 saved
    assert run.finished == 2
    used = sum(point.utilization_ratio for point in run.curve) / len(run.curve) * run.span_seconds
    assert used == pytest.approx(100 + 10 + 10)  # all work, the other job, and what was done twice


def test_equal_or_higher_ranks_and_protected_jobs_stay():
    for fields in (
        {"kind": "inference"},
        {"kind": "batch", "protected": True},
        {"kind": "batch", "preemptible": False},
    ):
        run = play([8], [came(0, 100, 8, **fields), came(10, 5, 8, kind="inference")], until=300, preemption=True)
        assert run.preemptions == 0
        assert size(run, "8").wait_max_seconds == 90


def test_who_was_sent_away_waits_in_its_old_place():
    batch = {"kind": "batch"}
    jobs = [came(0, 100, 8, **batch), came(5, 100, 8, **batch), came(10, 20, 8, kind="inference")]
    run = play([8], jobs, until=129, preemption=True)
    assert (run.finished, run.running, run.never_started) == (1, 1, 1)  # the first runs again, from 30 to 130


def test_gangs_start_on_all_their_nodes_at_once_and_others_may_leave_for_them():
    jobs = [came(0, 100, 4, kind="batch"), gang(came(10, 20, 8, kind="inference"), 2)]
    waits = play([8, 8], jobs, until=300)
    assert size(waits, "gang").wait_max_seconds == 90
    leaves = play([8, 8], jobs, until=300, preemption=True)
    assert size(leaves, "gang").wait_max_seconds == 0
    assert leaves.preemptions == 1


def test_a_gang_that_cannot_be_placed_sends_nobody_away():
    """On one of its two nodes somebody must stay, so nobody leaves the other."""
    jobs = [
        came(0, 100, 4, kind="batch"),
        came(1, 100, 5, kind="inference"),
        gang(came(10, 20, 8, kind="inference"), 2),
    ]
    run = play([8, 8], jobs, until=60, preemption=True)
    assert (run.preemptions, run.running, run.never_started) == (0, 2, 1)


def test_what_nobody_came_for_has_no_wait():
    run = play([8], [came(0, 10, 1)], until=60)
    assert size(run, "8").arrived == 0
    assert size(run, "8").wait_p95_seconds is None
    assert [each.size for each in run.sizes] == ["cpu", "share", "1", "2", "4", "8", "999", "gang"]


def test_utilization_is_weighted_by_time():
    run = play([8], [came(0, 50, 8)], until=200)
    assert run.utilization_ratio == pytest.approx(50 / run.span_seconds)
    assert run.offered_load_ratio == pytest.approx(50 / run.span_seconds)
    assert run.curve[0].utilization_ratio == 1
    assert run.curve[0].fragment_ratio is None  # nothing is idle


def test_who_still_waits_counts_with_the_wait_so_far():
    run = play([8], [came(0, 900, 8), came(10, 5, 8)], until=200)
    told = size(run, "8")
    assert (told.arrived, told.started, told.still_waiting) == (2, 1, 1)
    assert told.wait_p50_seconds == 0
    assert told.wait_p95_seconds == told.wait_max_seconds == pytest.approx(run.span_seconds - 10)
