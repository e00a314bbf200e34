"""idle_held: proof on every device, a price, evidence that can be asked again, and nobody stopped by mistake."""

from __future__ import annotations

from datetime import timedelta

import promql_parser
import pytest
from hypothesis import given, settings

from gpuwatch.advice.rule import RULES
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.fit.booking import book
from gpuwatch.model.cluster import MigInstance, Telemetry
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.settings import AnalysisSettings
from tests.advice.cases import OLD, context_of, matches_golden, reasons, run
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, busy, idle
from tests.counting.snapshots import snapshots


def held(*activities, jobs=None, node=None, more=(), **fields):
    """idle_held on a job that holds one device per activity, beside other jobs."""
    devices = [a_gpu(i, activity=activity, uuid=f"GPU-{i}") for i, activity in enumerate(activities)]
    fields.setdefault("started_at", OLD)
    mine = jobs or [a_job("j", "n1", list(range(len(devices))), **fields)]
    return run("idle_held", a_node(gpus=devices, **(node or {})), jobs=[*mine, *more])


def test_golden():
    quiet = idle(mean_power_watts=75.0, peak_memory_used_bytes=2 * 2**30)
    devices = [a_gpu(i, activity=quiet, uuid=f"GPU-{i}") for i in range(8)]
    job = a_job("j", "n1", list(range(8)), started_at=OLD, owner="Deployment/llm", kind="inference")
    waiting = a_job("big", shape=a_shape(gpus=8))
    node = a_node(gpus=devices)
    outcome = run("idle_held", node, jobs=[job, waiting], gpu_hour_price={"H100-80": 2.5})
    matches_golden("idle_held", outcome)
    (found,) = outcome.recommendations
    assert (found.severity, found.recoverable.gpus, found.recoverable.gpu_hours_per_week) == ("critical", 8.0, 1344.0)
    assert found.recoverable.cost == 2.5 * 8 * 168
    assert found.recoverable.kwh == round(8 * 75 * 168 / 1000, 1)
    assert found.unlocks == ("ml/big",)
    assert found.valid_until == NOW + timedelta(hours=1)


def test_without_price_or_power_the_reason_stands():
    (found,) = held(idle()).recommendations
    assert found.recoverable.missing == {"cost": "no_price_set", "kwh": "no_power_reading"}
    assert (found.recoverable.cost, found.recoverable.kwh) == (None, None)


def test_a_job_that_works_is_left_alone():
    outcome = held(busy())
    assert outcome.recommendations == outcome.abstentions == ()


@pytest.mark.parametrize(
    ("activity", "fields", "reason"),
    [
        (idle(), {"started_at": NOW - timedelta(minutes=5)}, "warm_up"),
        (idle(), {"started_at": None}, "age_unknown"),
        (idle(samples=3, samples_expected=10), {}, "insufficient_samples"),
        (idle(samples=42, samples_expected=60), {}, "insufficient_samples"),
        (None, {}, "no_telemetry"),
        (idle(), {"protected": True}, "protected"),
    ],
)
def test_abstentions(activity, fields, reason):
    outcome = held(activity, **fields)
    assert outcome.recommendations == ()
    assert reasons(outcome) == {"ml/j": reason}


def test_terminating_is_an_abstention():
    member = Member(name="j", node="n1", shares=(DeviceShare(gpu_index=0),), devices_known=True, terminating=True)
    job = Job(id="ml/j", name="j", shape=a_shape(), members=(member,), started_at=OLD)
    assert reasons(held(idle(), jobs=[job])) == {"ml/j": "terminating"}


def test_cpu_use_says_nothing_about_gpus():
    # A busy serving pod at 5% CPU, and no GPU telemetry at all: no finding, no saving.
    outcome = held(None, None)
    assert outcome.recommendations == ()


def test_jobs_without_gpus_never_appear():
    cpu_only = a_job("cpu", "n1", [], shape=a_shape(gpus=0))
    outcome = held(idle(), more=[cpu_only])
    assert {r.subject.name for r in outcome.recommendations} == {"ml/j"}
    assert outcome.abstentions == ()


def test_resident_memory_lowers_severity_and_confidence_and_is_told():
    (full,) = held(*[idle(peak_memory_used_bytes=74 * 2**30)] * 2).recommendations
    (empty,) = held(*[idle()] * 2).recommendations
    assert (empty.severity, full.severity) == ("warning", "info")
    assert full.confidence.value < empty.confidence.value
    assert "leftover process" in full.summary


def test_advice_is_sized_to_the_idle_part():
    (found,) = held(*[busy()] * 6, *[idle()] * 2, owner="Deployment/x").recommendations
    assert (found.recoverable.gpus, found.subject.gpus, found.severity) == (2.0, (6, 7), "info")
    assert all("scale" not in command.run for command in found.commands)
    assert "2 of 8" in found.summary


def test_utilization_alone_lowers_confidence():
    (found,) = held(idle(signal="utilization")).recommendations
    assert found.confidence.value == 0.7
    assert "(max_over_time(DCGM_FI_DEV_GPU_UTIL{" in found.evidence[0].query
    assert found.evidence[0].query.endswith(" / 100)")


def test_notebook_kernel_activity_does_not_matter_only_the_device_does():
    # kind interactive, GPU at 0 for six hours: idle; GPU busy: not.
    window = {"window_seconds": 6 * 3600, "samples": 720}
    started = NOW - timedelta(hours=9)
    assert held(idle(**window), kind="interactive", started_at=started).recommendations
    assert not held(busy(**window), kind="interactive", started_at=started).recommendations


def test_an_unhealthy_device_is_not_called_idle():
    sick = a_node(gpus=[a_gpu(0, activity=idle(), health="unhealthy")])
    outcome = run("idle_held", sick, jobs=[a_job("j", "n1", [0], started_at=OLD)])
    assert reasons(outcome) == {"ml/j": "unhealthy_device"}


def test_given_back_on_a_cordoned_node_nothing_is_unlocked():
    waiting = a_job("w", shape=a_shape())
    (found,) = held(idle(), node={"block_causes": ("cordoned",)}, more=[waiting]).recommendations
    assert found.unlocks == ()
    assert found.facts["blocked_nodes"] == "n1 cordoned"


def test_as_many_waiting_jobs_are_named_as_would_fit():
    waiting = [a_job(f"w{i}", shape=a_shape(), priority=i) for i in range(5)]
    (found,) = held(idle(), idle(), more=waiting).recommendations
    assert found.unlocks == ("ml/w3", "ml/w4")


def test_mig_instances_are_priced_by_their_sevenths():
    made = (MigInstance(id="3", profile="2g.20gb", compute_slices=2, memory_slices=2, activity=idle()),)
    share = DeviceShare(gpu_index=0, milligpu=0, mig_instance="3")
    member = Member(name="j", node="n1", shares=(share,), devices_known=True)
    job = Job(id="ml/j", name="j", shape=a_shape(mig_profile="2g.20gb"), members=(member,), started_at=OLD)
    outcome = run("idle_held", a_node(gpus=[a_gpu(0, mig_enabled=True, mig_instances=made, uuid="GPU-0")]), jobs=[job])
    (found,) = outcome.recommendations
    assert found.recoverable.gpus == pytest.approx(2 / 7, abs=1e-3)
    assert found.recoverable.missing["kwh"] == "slice_of_a_board"
    assert 'UUID="GPU-0",GPU_I_ID="3"' in found.evidence[0].query


@pytest.mark.parametrize("uuid", ["GPU-1", None, 'odd"uuid\\', "a.b|c"])
def test_every_query_is_promql(uuid):
    devices = [a_gpu(i, uuid=uuid and f"{uuid}{i}", activity=idle()) for i in range(2)]
    outcome = run("idle_held", a_node('n"1', gpus=devices), jobs=[a_job("j", 'n"1', [0, 1], started_at=OLD)])
    (found,) = outcome.recommendations
    for evidence in found.evidence:
        promql_parser.parse(evidence.query)
        assert (evidence.value is None) == (evidence.reason is not None)


def test_a_future_checkpoint_is_no_checkpoint():
    (future,) = held(idle(), last_checkpoint_at=NOW + timedelta(hours=1)).recommendations
    (fresh,) = held(idle(), last_checkpoint_at=NOW - timedelta(minutes=10)).recommendations
    assert (future.risk.work_lost_seconds, future.risk.checkpoint_age_seconds) == (7200, None)
    assert (fresh.risk.work_lost_seconds, fresh.risk.checkpoint_age_seconds) == (600, 600)


def test_ids_are_stable_across_evaluations():
    (first,) = held(idle()).recommendations
    (second,) = held(idle(mean_power_watts=60.0)).recommendations
    assert first.id == second.id


def test_memory_of_the_device_as_measured_decides_what_loaded_means():
    small = a_node(gpus=[a_gpu(0, activity=idle(peak_memory_used_bytes=20 * 2**30))])
    told = Telemetry(memory_total_bytes=24 * 2**30)
    measured = a_node(gpus=[a_gpu(0, activity=idle(peak_memory_used_bytes=20 * 2**30), telemetry=told)])
    job = a_job("j", "n1", [0], started_at=OLD)
    assert run("idle_held", small, jobs=[job]).recommendations[0].facts["loaded"] is False
    assert run("idle_held", measured, jobs=[job]).recommendations[0].facts["loaded"] is True


@settings(max_examples=200)
@given(snapshots())
def test_recoverable_is_what_the_waterfall_counts_as_idle(snapshot):
    outcome = RULES.get("idle_held").run(context_of(snapshot))
    booking = book(snapshot)
    counted = waterfalls(booking, snapshot.taken_at, AnalysisSettings())[0].idle_held_milligpu
    advised = sum(r.recoverable.gpus for r in outcome.recommendations) * 1000
    passed = {a.subject for a in outcome.abstentions if a.reason in ("protected", "unhealthy_device")}
    overheld = any(f.code == "over_allocated" for f in booking.findings)
    twice = any(
        len(names := [h.mig_instance for h in holds if h.mig_instance]) != len(set(names))
        for b in booking.nodes.values()
        for holds in b.holds
    )
    sick = any(g.health == "unhealthy" for n in snapshot.nodes for g in n.gpus)
    if not (passed or overheld or twice or sick):
        assert advised == pytest.approx(counted, abs=2 * len(snapshot.nodes) * 4)


def test_evidence_spells_devices_as_their_series_do():
    """The reader writes "GPU-" and lower case before every uuid; a query in that spelling would find nothing."""
    odd = a_gpu(0, uuid="GPU-abc", uuid_spellings=("ABC", "GPU-ABC"), activity=idle())
    (found,) = run("idle_held", a_node(gpus=[odd]), jobs=[a_job("j", "n1", [0], started_at=OLD)]).recommendations
    assert all('UUID=~"ABC|GPU-ABC"' in evidence.query for evidence in found.evidence)
