"""The jobs of a run: who comes, when, for how long and in which order of service."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.errors import InputError, SettingsError
from gpuwatch.placement.churn.course import course_of, rules_of
from gpuwatch.placement.churn.outcome import offered_load
from gpuwatch.placement.churn.replay import churn_field
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.stream import churn_stream
from gpuwatch.traces.trace_format import TRACE_START, JobTrace
from tests.builders import a_job, a_node, a_shape
from tests.placement.churn.worlds import some_world

BIG = JobTrace(
    nodes=tuple(a_node(f"n{at}", 8) for at in range(200)),
    jobs=tuple(a_job(f"j{at}", shape=a_shape(gpus, cpu=1000)) for at, gpus in enumerate((0, 1, 1, 1, 2, 4, 8))),
    workload="big",
)


def stream_of(trace: JobTrace, seed: int = 1, **settings):
    field = churn_field(trace)
    return churn_stream(trace, field.capacity_milligpu, ChurnSettings(**settings), seed)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 1.9])
@pytest.mark.parametrize("load", [0.5, 1.2])
def test_drawn_arrivals_ask_for_the_load_from_the_beginning_to_the_end(load, sigma):
    field, settings = churn_field(BIG), ChurnSettings(load=load, sigma=sigma, turnovers=8.0, warm_up=0.0)
    streams = [churn_stream(BIG, field.capacity_milligpu, settings, seed) for seed in range(24)]
    early, late = [], []
    for stream in streams:
        held = np.array([kind.milligpu for kind in stream.kinds])[stream.kind]
        for moment, found in ((0, early), (stream.end - 1, late)):
            there = (stream.arrival <= moment) & (stream.arrival + stream.length > moment)
            found.append(held[there].sum() / field.capacity_milligpu)
    assert np.mean(early) == pytest.approx(load, rel=0.08)
    assert np.mean(late) == pytest.approx(load, rel=0.08)
    course = course_of(streams[0], rules_of(settings, streams[0]), field.columns, field.capacity_milligpu)
    assert offered_load(streams[0], course) == pytest.approx(load, rel=0.2)


def test_drawn_durations_have_the_median_and_the_deviation_asked_for():
    stream = stream_of(BIG, load=1.0, median_seconds=100.0, sigma=0.7, turnovers=20.0)
    logs = np.log(stream.length[stream.initial :] / 1000)
    assert len(logs) > 5000
    assert math.exp(np.median(logs)) == pytest.approx(100, rel=0.05)
    assert logs.std() == pytest.approx(0.7, rel=0.05)
    assert stream.end == pytest.approx(20 * 100 * math.exp(0.7**2 / 2) * 1000, abs=1)


def test_every_job_of_the_list_comes_about_equally_often():
    stream = stream_of(BIG, load=1.0, turnovers=5.0, sigma=0.0)
    shapes = [kind.shape.gpus for kind in stream.kinds]
    count = np.bincount(stream.kind)
    by_size = {gpus: count[at] for at, gpus in enumerate(shapes)}
    assert by_size[1] == pytest.approx(3 * by_size[8], abs=6)


def test_the_seed_alone_decides():
    assert_equal(stream_of(BIG, 3), stream_of(BIG, 3))
    assert not np.array_equal(stream_of(BIG, 3).arrival, stream_of(BIG, 4).arrival)


def test_one_choice_changes_one_thing():
    """Durations do not depend on gangs or on the queue, so that runs under different choices can be compared."""
    one, other = stream_of(BIG, 3, sigma=1.0), stream_of(BIG, 3, sigma=1.0, queue="fifo", preemption=True)
    assert_equal(one, other)


def assert_equal(one, other):
    assert one.kinds == other.kinds
    for name in ("kind", "arrival", "length"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def timed(*jobs: tuple[int | None, int | None]) -> JobTrace:
    """Jobs of one GPU by (arrival, duration) in seconds."""
    listed = [
        replace(a_job(f"j{at}"), submitted_at=None if came is None else TRACE_START.replace(minute=came))
        for at, (came, _) in enumerate(jobs)
    ]
    told = {job.id: length for job, (_, length) in zip(listed, jobs, strict=True) if length is not None}
    return JobTrace(nodes=(a_node(gpus=8),), jobs=tuple(listed), workload="timed", duration_seconds=told)


def test_the_times_of_the_trace_are_taken_as_told():
    stream = stream_of(timed((5, 30), (0, 40), (7, 50)), times="trace")
    assert stream.arrival.tolist() == [0, 300_000, 420_000]
    assert stream.length.tolist() == [40_000, 30_000, 50_000]
    assert (stream.end, stream.jobs_without_time, stream.jobs_left_out) == (420_000, 0, 0)


def test_jobs_without_a_time_are_drawn_or_left_out_and_counted():
    stream = stream_of(timed((0, 30), (1, None), (None, 30), (None, None)), times="trace")
    assert stream.length.tolist() == [30_000, 30_000]
    assert (stream.jobs_without_time, stream.jobs_left_out) == (3, 2)
    drawn = stream_of(timed((0, 30), (1, None), (None, 50)), times="durations", load=1.0, turnovers=50.0)
    assert set(drawn.length[drawn.initial :].tolist()) <= {30_000, 50_000}
    assert (drawn.jobs_without_time, drawn.jobs_left_out) == (2, 0)


@pytest.mark.parametrize("times", ["durations", "trace"])
def test_a_list_without_durations_says_what_to_do(times):
    with pytest.raises(InputError, match="does not tell how long") as caught:
        stream_of(BIG, times=times)
    assert "--times drawn" in caught.value.todo


def test_a_list_without_arrivals_and_one_without_gpus_are_refused():
    with pytest.raises(InputError, match="when it arrived"):
        stream_of(timed((None, 30)), times="trace")
    with pytest.raises(InputError, match="asks for a GPU"):
        stream_of(replace(BIG, jobs=BIG.jobs[:1]))


def test_a_run_that_would_not_end_is_refused():
    with pytest.raises(InputError, match="is the most that a run takes"):
        stream_of(BIG, turnovers=1000.0, load=10.0)


def test_gangs_are_drawn_among_jobs_of_several_devices_at_the_same_load():
    stream = stream_of(BIG, load=1.0, gang_fraction=0.5, gang_members=3, sigma=0.0, turnovers=10.0)
    members = np.array([kind.members for kind in stream.kinds])[stream.kind]
    gpus = np.array([kind.shape.gpus for kind in stream.kinds])[stream.kind]
    assert set(members[gpus > 1].tolist()) == {1, 3}
    assert set(members[gpus <= 1].tolist()) == {1}
    assert (members[gpus > 1] == 3).mean() == pytest.approx(0.5, abs=0.05)
    held = np.array([kind.milligpu for kind in stream.kinds])[stream.kind]
    assert held[stream.arrival == 0].sum() / 1_600_000 == pytest.approx(1.0, rel=0.1)


def test_ranks_follow_priority_then_kind():
    jobs = (
        a_job("low", priority=-5),
        a_job("batch", kind="batch"),
        a_job("serves", kind="inference"),
        a_job("zero", priority=0),
        a_job("high", priority=5, kind="batch"),
    )
    stream = stream_of(replace(BIG, jobs=jobs), load=1.0)
    assert {kind.rank for kind in stream.kinds} == {0, 1, 2, 3}
    flat = stream_of(replace(BIG, jobs=jobs), load=1.0, priorities=False)
    assert {kind.rank for kind in flat.kinds} == {0}


@pytest.mark.parametrize(
    "settings",
    [
        {"times": "guessed"},
        {"queue": "lifo"},
        {"load": 0.0},
        {"load": float("nan")},
        {"sigma": -1.0},
        {"depth": 0},
        {"warm_up": 1.0},
        {"gang_members": 1},
        {"times": "trace", "turnovers": 2.0},
        {"times": "trace", "load": 0.5},
        {"preemption": True, "priorities": False},
    ],
)
def test_settings_that_no_run_could_honor_are_refused(settings):
    with pytest.raises(SettingsError):
        ChurnSettings(**settings)


def test_mig_jobs_are_refused():
    sliced = a_job("m", shape=a_shape(1, mig_profile="1g.10gb"))
    with pytest.raises(InputError, match="MIG"):
        churn_field(replace(BIG, jobs=(*BIG.jobs, sliced)))
    assert some_world(1).capacity_milligpu > 0
