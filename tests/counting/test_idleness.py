"""Idle needs proof on every device; missing is never idle; one sample of work is work."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings

from gpuwatch.counting.idleness import IdleVerdict, verdict
from gpuwatch.fit.booking import book
from gpuwatch.model.cluster import MigInstance, Telemetry
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, a_snapshot, busy, idle
from tests.counting.snapshots import snapshots

SETTINGS = AnalysisSettings()
OLD = NOW - timedelta(hours=3)


def judge(*activities, job: Job | None = None, gpu: dict | None = None, **fields) -> IdleVerdict:
    """The verdict on a job that holds one device per given activity."""
    fields.setdefault("started_at", OLD)
    devices = [a_gpu(i, activity=activity, **(gpu or {})) for i, activity in enumerate(activities)]
    job = job or a_job("j", "n1", list(range(len(devices))), **fields)
    return verdict(job, book(a_snapshot(a_node(gpus=devices), jobs=[job])), NOW, SETTINGS)


def test_idle_on_all_devices_for_a_whole_window():
    v = judge(idle(), idle())
    assert (v.state, v.reason, len(v.idle_devices)) == ("idle", "measured_idle", 2)
    assert {c.name for c in v.clauses} == {"terminating", "age", "window", "samples", "peak"}
    assert all(c.held for c in v.clauses)
    assert next(c for c in v.clauses if c.name == "age").value == 3 * 3600


def test_busy_ten_minutes_then_idle_for_six_hours_is_idle():
    # The trailing window tells it: whatever the job did before, its last six hours had no work.
    v = judge(idle(window_seconds=6 * 3600, samples=720), started_at=NOW - timedelta(hours=6, minutes=10))
    assert (v.state, v.window_seconds) == ("idle", 6 * 3600)


def test_a_low_mean_with_one_peak_is_work():
    assert judge(busy(peak=0.6, mean=0.001)).state == "active"


@pytest.mark.parametrize(
    ("activity", "reason"),
    [
        (None, "no_telemetry"),
        (idle(samples=3, samples_expected=10), "insufficient_samples"),
        (idle(samples=42, samples_expected=60), "insufficient_samples"),  # 30% of the window is a scrape gap
        (idle(samples_expected=0), "insufficient_samples"),
        (idle(window_seconds=600), "window_too_short"),
        (busy(peak=None), "no_telemetry"),
        (busy(peak=float("nan")), "no_telemetry"),
        (busy(peak=9223372036854775794.0), "no_telemetry"),
        (busy(peak=-1.0), "no_telemetry"),
        (idle(signal="none"), "no_telemetry"),
    ],
)
def test_too_little_data_is_unknown_with_its_reason(activity, reason):
    v = judge(activity, idle())
    assert (v.state, v.reason, v.idle_devices) == ("unknown", reason, ())


def test_the_shortfall_is_told_in_samples():
    assert "7 more needed" in judge(idle(samples=3, samples_expected=10)).detail


def test_few_samples_of_work_are_still_work():
    assert judge(busy(samples=2, samples_expected=60)).state == "active"


def test_the_source_says_why_nothing_was_measured():
    assert judge(None, gpu={"activity_reason": "exporter_down"}).reason == "exporter_down"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"started_at": NOW - timedelta(minutes=29)}, "warm_up"),
        ({"started_at": NOW + timedelta(hours=1)}, "warm_up"),
        ({"started_at": None}, "age_unknown"),
        ({"started_at": datetime(2026, 1, 1)}, "age_unknown"),  # noqa: DTZ001
    ],
)
def test_no_verdict_without_a_known_age_past_warm_up(fields, reason):
    v = judge(idle(), **fields)
    assert (v.state, v.reason) == ("unknown", reason)


def test_exactly_at_warm_up_there_is_a_verdict():
    assert judge(idle(), started_at=NOW - timedelta(minutes=30)).state == "idle"


def test_a_terminating_job_gets_no_idle_verdict():
    member = Member(name="m", node="n1", shares=(DeviceShare(gpu_index=0),), devices_known=True, terminating=True)
    job = Job(id="ml/j", name="j", shape=a_shape(), members=(member,), started_at=OLD)
    assert judge(idle(), job=job).reason == "terminating"


def test_loaded_idle_is_told():
    v = judge(idle(peak_memory_used_bytes=74 * 2**30))  # 92% of 80 GiB at no work
    assert v.state == "idle"
    assert v.loaded
    assert not judge(idle(peak_memory_used_bytes=2**30)).loaded


def test_measured_memory_wins_over_the_catalogue():
    told = {"telemetry": Telemetry(memory_total_bytes=40 * 2**30)}
    assert judge(idle(peak_memory_used_bytes=13 * 2**30), gpu=told).loaded


def test_partly_idle_counts_the_quiet_devices():
    v = judge(busy(), idle(), idle())
    assert (v.state, v.reason, [d.gpu_index for d in v.idle_devices]) == ("active", "partly_idle", [1, 2])


def test_an_unknown_device_keeps_the_quiet_ones_unknown():
    v = judge(busy(), idle(), None)
    assert [d.state for d in v.devices] == ["active", "unknown", "unknown"]


def mig_judge(*activities) -> list[IdleVerdict]:
    made = tuple(
        MigInstance(id=str(i), profile="1g.10gb", compute_slices=1, memory_slices=1, activity=a)
        for i, a in enumerate(activities)
    )
    node = a_node(gpus=[a_gpu(0, mig_enabled=True, mig_instances=made, activity=idle(signal="utilization"))])
    jobs = []
    for i in range(len(made)):
        share = DeviceShare(gpu_index=0, milligpu=0, mig_instance=str(i))
        member = Member(name=f"m{i}", node="n1", shares=(share,), devices_known=True)
        shape = a_shape(mig_profile="1g.10gb")
        jobs.append(Job(id=f"ml/{i}", name=str(i), shape=shape, members=(member,), started_at=OLD))
    booking = book(a_snapshot(node, jobs=jobs))
    return [verdict(job, booking, NOW, SETTINGS) for job in jobs]


def test_mig_reads_the_instance_never_the_parent():
    verdicts = mig_judge(busy(peak=0.7), None, None, None, idle())
    assert [v.state for v in verdicts] == ["active", "unknown", "unknown", "unknown", "idle"]


def test_a_zero_utilization_counter_in_mig_mode_proves_nothing():
    assert mig_judge(idle(signal="utilization"))[0].reason == "signal_unfit_for_mig"


def shared(activity) -> list[IdleVerdict]:
    node = a_node(gpus=[a_gpu(0, replicas=4, activity=activity)])
    jobs = [a_job(f"j{i}", "n1", [0], shape=a_shape(milligpu=250), started_at=OLD) for i in range(3)]
    booking = book(a_snapshot(node, jobs=jobs))
    return [verdict(job, booking, NOW, SETTINGS) for job in jobs]


def test_of_a_working_shared_device_no_single_job_is_known():
    assert {(v.state, v.reason) for v in shared(busy())} == {("unknown", "shared_device")}


def test_of_an_idle_shared_device_all_jobs_are_idle():
    assert {v.state for v in shared(idle())} == {"idle"}


def test_devices_that_nobody_found_are_not_idle():
    job = a_job("j", "n1", [0, 7], started_at=OLD)
    assert judge(idle(), job=job).reason == "devices_not_found"


def unnamed(*activities, gpus: int = 1, milligpu: int = 1000, more=()) -> IdleVerdict:
    """The verdict on a job of which nobody says where on its node it runs."""
    devices = [a_gpu(i, activity=activity) for i, activity in enumerate(activities)]
    job = a_job("u", "n1", shape=a_shape(gpus=gpus, milligpu=milligpu), started_at=OLD)
    return verdict(job, book(a_snapshot(a_node(gpus=devices), jobs=[job, *more])), NOW, SETTINGS)


def test_a_guessed_device_proves_nothing_while_the_job_may_work_beside_it():
    assert unnamed(idle(), busy()).reason == "devices_unknown"
    assert unnamed(busy(), idle()).reason == "devices_unknown"
    assert unnamed(idle(), None).reason == "devices_unknown"


def test_where_all_candidates_agree_a_guess_is_enough():
    assert unnamed(idle(), idle()).state == "idle"
    assert unnamed(busy(), busy(), gpus=2).state == "active"


def test_devices_that_others_are_known_to_hold_are_no_candidates():
    other = a_job("k", "n1", [1], started_at=OLD)
    assert unnamed(idle(), busy(), more=[other]).state == "idle"


def test_a_share_of_an_unnamed_working_device_is_not_judged():
    assert unnamed(busy(), milligpu=250).state == "unknown"


def test_an_unbound_job_has_no_verdict():
    assert judge(idle(), job=a_job("j")).reason == "not_bound"


@settings(max_examples=200)
@given(snapshots())
def test_idle_only_with_proof_on_every_device(snapshot):
    booking = book(snapshot)
    for job in snapshot.jobs:
        v = verdict(job, booking, snapshot.taken_at, SETTINGS)
        if v.state == "idle":
            assert all(c.held for c in v.clauses)
            assert all(d.measured.state == "idle" for d in v.devices)
            assert not any(m.terminating for m in job.members)
        if v.idle_devices:
            assert all(d.measured.peak_ratio < SETTINGS.idle_peak_ratio for d in v.idle_devices)
            assert all(d.measured.state != "unknown" for d in v.devices)
