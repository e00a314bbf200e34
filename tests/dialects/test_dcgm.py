# ruff: noqa: E501 (exposition lines stay as exporters write them)
from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpuwatch.dialects.dcgm import TABLE, normalized_uuid, series_name
from gpuwatch.dialects.dialect import DIALECTS, observe
from gpuwatch.model.observations import Holder, Observations, Sample
from tests.dialects.exposition import samples

OLD = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570"} 87
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 1024
DCGM_FI_DEV_FB_TOTAL{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 81559
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 612.5
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 61
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 0.91
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 79
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0",UUID="GPU-AB-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 1
"""

NEW = """
DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a",DCGM_FI_SYSTEM_DRIVER_VERSION="580"} 0.87
DCGM_FI_DEV_FB_USED_BYTES{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 1073741824
DCGM_FI_DEV_FB_CAPACITY_BYTES{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 85520809984
DCGM_FI_DEV_BOARD_POWER_WATTS{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 612.5
DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 61
DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 0.91
DCGM_FI_DEV_XID_ERROR{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 79
DCGM_FI_DEV_ROW_REMAP_FAILED{gpu="0",UUID="GPU-ab-1",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"} 1
"""


def values(observed: Observations) -> dict[str, float]:
    return {reading.field: round(reading.value, 6) for reading in observed.readings}


def one(metric: str, value: float, **labels: str) -> Observations:
    given = {"gpu": "0", "UUID": "GPU-x", "Hostname": "n1", **labels}
    return observe([Sample(metric=metric, labels=given, value=value)])


def test_both_generations_tell_the_same_state():
    old, new = observe(samples(OLD)), observe(samples(NEW))
    assert values(old) == values(new)
    assert {replace(r.device, uuid_text=None) for r in old.readings} == {
        replace(r.device, uuid_text=None) for r in new.readings
    }
    assert {r.device.uuid_text for r in (*old.readings, *new.readings)} == {"GPU-AB-1", "GPU-ab-1"}
    assert old.spellings == ("Hostname", "UUID")
    assert new.spellings == ("UUID", "hostname")
    assert values(old)["memory_used_bytes"] == 2**30


@pytest.mark.parametrize(
    "blank",
    [9223372036854775794.0, 2147483634.0, 140737488355330.0, math.nan, math.inf, -math.inf],
)
@pytest.mark.parametrize("metric", ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"])
def test_blanks_are_dropped_and_counted(metric, blank):
    observed = one(metric, blank)
    assert observed.readings == ()
    assert [(drop.metric, drop.count) for drop in observed.dropped] == [(metric, 1)]
    assert observed.dropped[0].reason in ("sentinel", "not_finite")


@pytest.mark.parametrize(("metric", "value"), [("DCGM_FI_DEV_GPU_UTIL", 250), ("DCGM_FI_DEV_GPU_TEMP", 9999)])
def test_what_no_card_can_show_is_dropped(metric, value):
    assert one(metric, value).dropped[0].reason == "out_of_range"


def test_a_percentage_is_never_above_one():
    assert one("DCGM_FI_DEV_GPU_UTIL", 100.4).readings[0].value == 1.0


def test_moved_labels_win_over_the_exporters_own():
    observed = one(
        "DCGM_FI_DEV_GPU_UTIL",
        1,
        pod="dcgm-exporter-abc",
        namespace="gpu",
        exported_pod="job-0",
        exported_namespace="ml",
    )
    assert observed.readings[0].holder == Holder(namespace="ml", pod="job-0")


def test_a_plain_pod_label_beside_moved_ones_is_the_exporters():
    labels = {
        "gpu": "1",
        "UUID": "GPU-y",
        "Hostname": "n1",
        "pod": "x-9",
        "namespace": "gpu",
        "job": "d",
        "instance": "i",
    }
    busy = {**labels, "gpu": "0", "UUID": "GPU-x", "exported_pod": "job-0", "exported_namespace": "ml"}
    observed = observe([Sample(metric="DCGM_FI_DEV_GPU_UTIL", labels=each, value=1) for each in (labels, busy)])
    held = {reading.device.uuid: reading.holder for reading in observed.readings}
    assert held == {"GPU-x": Holder(namespace="ml", pod="job-0"), "GPU-y": None}


def test_the_exporters_own_pod_holds_nothing():
    assert one("DCGM_FI_DEV_GPU_UTIL", 1, pod="nvidia-dcgm-exporter-7x", namespace="gpu").readings[0].holder is None


def test_mig_labels_name_the_slice_and_a_null_profile_is_none():
    ref = one("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.4, GPU_I_ID="7", GPU_I_PROFILE="1g.10gb").readings[0].device
    assert (ref.mig_id, ref.mig_profile) == ("7", "1g.10gb")
    assert (
        one("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.4, GPU_I_ID="7", GPU_I_PROFILE="NULL").readings[0].device.mig_profile
        is None
    )


def test_power_on_a_slice_is_the_boards():
    assert one("DCGM_FI_DEV_POWER_USAGE", 143.5, GPU_I_ID="7", GPU_I_PROFILE="1g.10gb").readings[0].board
    assert not one("DCGM_FI_DEV_FB_USED", 143, GPU_I_ID="7", GPU_I_PROFILE="1g.10gb").readings[0].board


def test_xid_counts_name_the_code_and_zero_counts_say_nothing():
    assert one("DCGM_EXP_XID_ERRORS_COUNT", 2, xid="48").readings[0].value == 48
    assert one("DCGM_EXP_XID_ERRORS_COUNT", 0, xid="48").readings == ()
    assert one("DCGM_EXP_XID_ERRORS_COUNT", 1, xid="?").dropped[0].reason == "unknown_label"


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("GPU-AB", "GPU-ab"),
        ("ab", "GPU-ab"),
        ("MIG-GPU-AB/3/0", "GPU-ab"),
        ("MIG-cd", "MIG-cd"),
        ("", None),
        (None, None),
    ],
)
def test_uuid_spellings(written, normal):
    assert normalized_uuid(written) == normal


def test_every_field_has_names_and_the_table_is_this_dialects():
    assert series_name("utilization_ratio") == ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO")
    assert "DCGM_EXP_XID_ERRORS_COUNT" not in series_name("xid", "peak")
    assert DIALECTS.get("dcgm").metrics == frozenset(TABLE)


def test_samples_of_other_exporters_are_left_alone():
    assert observe([Sample(metric="node_load1", labels={}, value=1)]) == Observations()
