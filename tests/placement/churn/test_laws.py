"""What must hold in any run, whatever the list, the policy and the settings."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from gpuwatch.placement.churn import outcome
from gpuwatch.placement.churn import plain_cluster as plain
from gpuwatch.placement.churn.course import course_of, rules_of
from gpuwatch.placement.churn.loop import run
from gpuwatch.placement.churn.replay import replay_churn
from gpuwatch.placement.churn.stream import churn_stream
from gpuwatch.placement.policy import POLICIES
from gpuwatch.placement.replay import node_order
from tests.placement.churn.worlds import a_course, some_settings, some_world

SEEDS = range(40)


def policy_of(seed: int) -> str:
    return POLICIES.ids()[seed % len(POLICIES.ids())]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_ever_given_away_twice(seed):
    """Watched at every single booking: devices, CPU and memory stay within 0 and what the empty node has."""
    field, settings = some_world(seed), some_settings(seed)
    stream = churn_stream(field.trace, field.capacity_milligpu, settings, seed)
    course = course_of(stream, rules_of(settings, stream), field.columns, field.capacity_milligpu)
    order = node_order(field, seed)
    cluster, empty, seen = (
        plain.PlainCluster(field, policy_of(seed), stream.kinds, order, seed),
        field.columns,
        Counter(),
    )

    def watched(operation):
        def call(cluster, kind, row, devices):
            operation(cluster, kind, row, devices)
            seen[operation.__name__] += 1
            for name in ("left", "cpu_free", "memory_free"):
                now, most = getattr(cluster.state, name)[row], getattr(empty, name)[row]
                assert np.all(now >= 0), name
                assert np.all(now <= most), name
            assert cluster.total[0] == cluster.state.left.sum()

        return call

    find, *others = plain.PLAIN
    run(find, *map(watched, others), cluster, course, order)
    assert seen["plain_take"] >= seen["plain_untake"]
    held = seen["plain_take"] + seen["plain_again"] - seen["plain_untake"] - seen["plain_give"]
    assert held == (course.slots.row >= 0).sum()
    if not held:
        assert (cluster.state.left == empty.left).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_is_somewhere_and_did_its_work(seed):
    stream, course = a_course(some_world(seed), policy_of(seed), seed, some_settings(seed))
    jobs, told = course.jobs, outcome.counts(course)
    states = told["finished"] + told["running"] + told["waiting"] + told["refused"]
    assert told["arrived"] == len(stream.kind) == states
    done = jobs.finished >= 0
    untouched = done & (jobs.lost == 0) & (jobs.preempted == 0) & (jobs.finished - jobs.first_began == stream.length)
    sent_away = done & (jobs.finished - jobs.first_began > stream.length)
    assert (done == untouched | sent_away).all()
    # Whoever took longer than the work was away in between; the time on the cluster is the work and what was lost.
    assert (jobs.finished[sent_away] - jobs.first_began[sent_away] > (stream.length + jobs.lost)[sent_away] - 1).all()
    assert (jobs.first_began[jobs.first_began >= 0] >= stream.arrival[jobs.first_began >= 0]).all()
    assert (jobs.left[done] == 0).all()
    assert (jobs.left[~done] > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_without_preemption_no_work_is_lost_and_nobody_leaves_early(seed):
    settings = some_settings(seed, preemption=False)
    stream, course = a_course(some_world(seed), policy_of(seed), seed, settings)
    jobs = course.jobs
    assert not jobs.lost.any()
    assert not jobs.preempted.any()
    done = jobs.finished >= 0
    assert (jobs.finished[done] - jobs.first_began[done] == stream.length[done]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_strict_order_is_never_overtaken(seed):
    settings = some_settings(seed, queue="fifo", preemption=False)
    stream, course = a_course(some_world(seed), policy_of(seed), seed, settings)
    began = np.where(course.jobs.first_began < 0, np.iinfo(np.int64).max, course.jobs.first_began)
    by_rank = defaultdict(list)
    for job, kind in enumerate(stream.kind):
        if course.kinds.possible[kind]:
            by_rank[int(course.kinds.rank[kind])].append(int(began[job]))
    for starts in by_rank.values():
        assert starts == sorted(starts)
    # Nor by a lower rank: who is served first and waits already is not passed.
    for job, kind in enumerate(stream.kind):
        for other, its in enumerate(stream.kind):
            if course.kinds.rank[its] > course.kinds.rank[kind] and course.kinds.possible[kind]:
                waits = stream.arrival[job] <= began[other] < began[job]
                assert not waits or not course.kinds.possible[its] or began[other] == np.iinfo(np.int64).max


@pytest.mark.parametrize("seed", SEEDS)
def test_gangs_stand_together_or_not_at_all(seed):
    settings = some_settings(seed, times="drawn", turnovers=2.0, gang_fraction=0.7, gang_members=3)
    stream, course = a_course(some_world(seed), policy_of(seed), seed, settings)
    for job in range(len(stream.kind)):
        rows = course.slots.row[course.slots.first[job] : course.slots.first[job + 1]]
        assert len(rows) == stream.kinds[stream.kind[job]].members
        assert (rows >= 0).all() if course.jobs.began[job] >= 0 else (rows < 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_only_lower_ranks_that_may_leave_are_sent_away(seed):
    settings = some_settings(seed, preemption=True, warm_up=0.0, checkpoint_seconds=0.0)
    stream, course = a_course(some_world(seed), policy_of(seed), seed, settings)
    gone = np.flatnonzero(course.jobs.preempted)
    assert course.kinds.evictable[stream.kind[gone]].all()
    assert (course.kinds.rank[stream.kind[gone]] > 0).all()
    assert (course.jobs.lost[course.jobs.preempted == 0] == 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_run_is_the_same_every_time_and_measures_stay_in_their_bounds(seed):
    field, settings = some_world(seed), some_settings(seed)
    runs = [replay_churn(field, policy_of(seed), seed=seed, settings=settings, compiled=False) for _ in range(2)]
    fields = [{name: getattr(each, name) for name in each.__slots__ if name != "seconds"} for each in runs]
    assert fields[0] == fields[1]
    for point in runs[0].curve:
        assert 0 <= point.utilization_ratio <= 1
        assert point.fragment_ratio is None or 0 <= point.fragment_ratio <= 1 + 1e-6  # weights are rounded
        idle = (1 - point.utilization_ratio) * field.capacity_milligpu
        assert 0 <= point.stuck_milligpu <= min(idle, point.waiting_milligpu) + 1e-6
    for size in runs[0].sizes:
        assert size.arrived == size.started + size.still_waiting
        if size.arrived == 0:
            assert (size.wait_p50_seconds, size.wait_p95_seconds, size.wait_max_seconds) == (None, None, None)
        else:
            assert 0 <= size.wait_p50_seconds <= size.wait_p95_seconds <= size.wait_max_seconds


def test_the_worlds_have_what_the_laws_speak_of():
    """Or the laws above would hold of nothing."""
    seen = Counter()
    for seed in SEEDS:
        stream, course = a_course(some_world(seed), policy_of(seed), seed, some_settings(seed))
        told = outcome.counts(course)
        gang = course.kinds.members[stream.kind] > 1
        seen.update({name for name, count in told.items() if count})
        seen["preempted"] += bool(course.jobs.preempted.any())
        seen["lost"] += bool(course.jobs.lost.any())
        seen["gang started"] += bool((gang & (course.jobs.first_began >= 0)).any())
        seen["gang sent away"] += bool((gang & (course.jobs.preempted > 0)).any())
        seen["stuck"] += bool(course.parts.stuck.any())
    for name in ("finished", "running", "waiting", "refused", "preempted", "lost", "gang started", "stuck"):
        assert seen[name] >= 5, name
    assert seen["gang sent away"] >= 1
