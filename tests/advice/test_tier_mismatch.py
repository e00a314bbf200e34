"""tier_mismatch: light work, known memory, and a lower card that stands in this cluster."""

from __future__ import annotations

from datetime import timedelta

import promql_parser
import pytest

from gpuwatch.model.cluster import MigInstance
from tests.advice.cases import OLD, matches_golden, reasons, run
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, busy, idle

GIB = 2**30


def light(mean: float = 0.1, memory: int | None = 10 * GIB, **fields):
    return busy(peak=0.5, mean=mean, peak_memory_used_bytes=memory, **fields)


def judge(activity, *others, devices: int = 1, more=(), prices=None, gpu=None, **fields):
    """tier_mismatch on a job that holds H200 devices, in a cluster that also has the given nodes."""
    gpus = [a_gpu(i, "H200-141", uuid=f"GPU-{i}", activity=activity, **(gpu or {})) for i in range(devices)]
    fields.setdefault("started_at", OLD)
    job = a_job("j", "n1", list(range(devices)), **fields)
    return run("tier_mismatch", a_node("n1", gpus=gpus), *others, jobs=[job, *more], gpu_hour_price=prices or {})


def a_smaller(model: str = "A100-40", **fields):
    fields.setdefault("labels", {"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB"})
    return a_node("n2", gpus=4, model=model, **fields)


def test_golden():
    waiting = a_job("w", shape=a_shape(gpu_models=("H200-141",)))
    prices = {"H200-141": 4.0, "A100-40": 1.5}
    outcome = judge(
        light(mean_power_watts=200.0), a_smaller(), more=[waiting], prices=prices, owner="ReplicaSet/api-7d9c5b8f6d"
    )
    matches_golden("tier_mismatch", outcome)
    (found,) = outcome.recommendations
    assert found.recoverable.cost == (4.0 - 1.5) * 168
    assert found.facts["target_card"] == "A100-40"
    assert found.unlocks == ("ml/w",)
    assert found.commands[0].run.startswith("kubectl -n ml patch deployment api ")
    for evidence in found.evidence:
        promql_parser.parse(evidence.query)


def test_no_lower_card_installed_no_advice():
    assert judge(light()).recommendations == ()


@pytest.mark.parametrize(
    ("activity", "other"),
    [
        (light(mean=0.5), a_smaller()),  # it earns its card
        (light(memory=35 * GIB), a_smaller()),  # 35 GiB with a quarter in hand does not go into 40
        (light(mean=0.25), a_smaller("T4")),  # the lower card would be swamped
        (idle(peak_memory_used_bytes=GIB), a_smaller()),  # not light but idle: another rule's
    ],
)
def test_no_advice_when_the_lower_card_would_not_do(activity, other):
    assert judge(activity, other).recommendations == ()


@pytest.mark.parametrize(
    ("activity", "fields", "reason"),
    [
        (light(memory=None), {}, "memory_unknown"),
        (None, {}, "no_telemetry"),
        (light(mean=None), {}, "no_mean_activity"),
        (light(samples=10, samples_expected=60), {}, "insufficient_samples"),
        (light(window_seconds=60), {}, "window_too_short"),
        (light(), {"started_at": NOW - timedelta(minutes=1)}, "warm_up"),
        (light(), {"protected": True}, "protected"),
        (light(), {"shape": a_shape(milligpu=500)}, "shared_device"),
    ],
)
def test_abstentions(activity, fields, reason):
    outcome = judge(activity, a_smaller(), **fields)
    assert outcome.recommendations == ()
    assert reasons(outcome) == {"ml/j": reason}


def test_several_linked_devices_need_a_linked_card():
    assert judge(light(0.05), a_smaller("L40S"), devices=2).recommendations == ()
    assert judge(light(0.05), a_smaller("L40S"), devices=1).recommendations


def test_a_full_lower_card_lowers_severity_and_unlocks_nothing():
    fillers = [a_job(f"f{i}", "n2", [i]) for i in range(4)]
    waiting = a_job("w", shape=a_shape(gpu_models=("H200-141",)))
    (found,) = judge(light(), a_smaller(), more=[*fillers, waiting]).recommendations
    assert (found.severity, found.unlocks, found.facts["target_free_now"]) == ("info", (), False)


def test_without_a_product_label_the_owner_is_told_and_nothing_is_patched():
    (found,) = judge(light(), a_smaller(labels={}), owner="Deployment/api").recommendations
    assert "gpuwatch.io/suggested-card=A100-40" in found.commands[0].run


def test_equal_prices_save_nothing():
    (found,) = judge(light(), a_smaller(), prices={"default": 2.0}).recommendations
    assert (found.recoverable.cost, found.recoverable.missing["cost"]) == (None, "no_price_difference")


def test_pods_that_share_an_owner_are_not_restarted_for_one():
    sibling = a_job("k", "n2", [0], owner="Deployment/api")
    (found,) = judge(light(), a_smaller(), more=[sibling], owner="Deployment/api").recommendations
    assert [command.run.split()[3] for command in found.commands] == ["annotate"]


def test_a_named_card_lowers_confidence():
    (named,) = judge(light(), a_smaller(), shape=a_shape(gpu_models=("H200-141",))).recommendations
    (free,) = judge(light(), a_smaller()).recommendations
    assert named.confidence.value < free.confidence.value


def test_devices_in_mig_mode_are_not_judged():
    made = (MigInstance(id="0", profile="7g.141gb", compute_slices=7, memory_slices=8),)
    outcome = judge(light(), a_smaller(), gpu={"mig_enabled": True, "mig_instances": made})
    assert outcome.recommendations == outcome.abstentions == ()


def test_a_free_card_is_not_offered_to_two_jobs():
    """Each of two jobs would fit on the one free lower card; both together would not."""
    high = a_node("n1", gpus=[a_gpu(i, "H200-141", uuid=f"GPU-{i}", activity=light()) for i in range(2)])
    low = a_node("n2", gpus=1, model="A100-40")
    jobs = [a_job(name, "n1", [at], started_at=OLD) for at, name in enumerate(("a", "b"))]
    found = {r.subject.name: r for r in run("tier_mismatch", high, low, jobs=jobs).recommendations}
    assert {name: r.facts["target_free_now"] for name, r in found.items()} == {"ml/a": True, "ml/b": False}
    assert found["ml/a"].facts["target_pools"] == low.pool
    assert found["ml/b"].unlocks == ()
