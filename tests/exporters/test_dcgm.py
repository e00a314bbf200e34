"""Node pages: names of both generations, MIG, several pods on a device, what is absent and why."""

from __future__ import annotations

from datetime import timedelta

import pytest
from gpuwatch_exporters.replay.dcgm import Style, render_node, uuid_of
from gpuwatch_exporters.replay.frames import EnergyMeters, ExporterDownError
from gpuwatch_exporters.replay.holders import Pod
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.dialects.dialect import observe
from gpuwatch.model.cluster import MigInstance, Telemetry
from tests.builders import a_gpu, a_job, a_node
from tests.exporters.worlds import NOW, generated, samples_of

OLD, NEW = Style(), Style(names="new", hostname_label="hostname")


def a_reading(**fields) -> Telemetry:
    known = {
        "utilization_ratio": 0.87,
        "engine_active_ratio": 0.75,
        "memory_used_bytes": 61234 * 2**20,
        "memory_total_bytes": 81559 * 2**20,
        "power_watts": 612.4,
        "power_limit_watts": 700.0,
        "temperature_celsius": 67.0,
    }
    return Telemetry(**{**known, **fields})


def page(node, pods=None, style: Style = OLD) -> str:
    return render_node(node, pods or {}, style, lambda gpu: 12.5)


def series(text: str) -> dict[str, list]:
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_both_generations_of_names_tell_the_same_state() -> None:
    node = a_node(gpus=[a_gpu(telemetry=a_reading(xid=31))])
    told = []
    for style in (OLD, NEW):
        seen = observe(samples_of(page(node, style=style), "dcgm-exporter", "n1"))
        assert seen.dropped == ()
        told.append({reading.field: reading.value for reading in seen.readings})
    assert told[0] == pytest.approx(told[1])
    for name in ("utilization_ratio", "engine_active_ratio", "memory_used_bytes", "power_watts", "xid"):
        assert told[0][name] == pytest.approx(getattr(node.gpus[0].telemetry, name))


def test_labels_are_spelled_as_the_generation_spells_them() -> None:
    node = a_node(gpus=[a_gpu(telemetry=a_reading())])
    old = series(page(node))["DCGM_FI_DEV_GPU_UTIL"][0].labels
    new = series(page(node, style=NEW))["DCGM_FI_DEV_GPU_UTIL_RATIO"][0].labels
    assert old["Hostname"] == "n1"
    assert "DCGM_FI_DRIVER_VERSION" in old
    assert new["hostname"] == "n1"
    assert "DCGM_FI_SYSTEM_DRIVER_VERSION" in new
    assert "pod" not in old


def test_each_pod_on_a_shared_device_gets_its_own_copy_of_the_series() -> None:
    node = a_node(gpus=[a_gpu(telemetry=a_reading())])
    pods = [Pod(job, job.members[0]) for job in (a_job("a", "n1", [0]), a_job("b", "n1", [0]))]
    samples = series(page(node, {(0, None): pods}))["DCGM_FI_DEV_POWER_USAGE"]
    assert [(s.labels["pod"], s.labels["namespace"], s.value) for s in samples] == [
        ("a-0", "ml", 612.4),
        ("b-0", "ml", 612.4),
    ]


def test_instances_repeat_the_board_and_have_no_utilization() -> None:
    parts = tuple(
        MigInstance(
            id=str(i),
            profile="3g.40gb",
            compute_slices=3,
            memory_slices=4,
            telemetry=Telemetry(engine_active_ratio=active, memory_used_bytes=2**30, memory_total_bytes=40 * 2**30),
        )
        for i, active in ((1, 0.5), (2, 0.0))
    )
    silent = MigInstance(id="9", profile="1g.10gb", compute_slices=1, memory_slices=1)
    gpu = a_gpu(mig_enabled=True, mig_instances=(*parts, silent), telemetry=a_reading())
    job = a_job("a", "n1", [0])
    seen = series(page(a_node(gpus=[gpu]), {(0, "1"): [Pod(job, job.members[0])]}))
    assert "DCGM_FI_DEV_GPU_UTIL" not in seen
    assert [s.value for s in seen["DCGM_FI_DEV_POWER_USAGE"]] == [612.4, 612.4]
    active = seen["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
    assert [(s.labels["GPU_I_ID"], s.labels["GPU_I_PROFILE"], s.labels.get("pod"), s.value) for s in active] == [
        ("1", "3g.40gb", "a-0", 0.5),
        ("2", "3g.40gb", None, 0.0),
    ]


def test_what_is_not_known_has_no_series() -> None:
    dark = a_gpu(1, telemetry=None, telemetry_reason="lost")
    bare = a_gpu(0, model="G2", telemetry=a_reading(power_watts=None, memory_used_bytes=None, memory_total_bytes=None))
    seen = series(page(a_node(gpus=[bare, dark])))
    assert {s.labels["gpu"] for samples in seen.values() for s in samples} == {"0"}
    assert not {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_XID_ERRORS"} & set(seen)
    assert page(a_node(gpus=[dark])) == ""


def test_hostile_names_survive_the_strict_parser() -> None:
    evil = 'a"b\\c\nd{e}'
    node = a_node(evil, gpus=[a_gpu(product=evil, telemetry=a_reading())])
    labels = series(page(node))["DCGM_FI_DEV_FB_USED"][0].labels
    assert labels["Hostname"] == evil
    assert labels["modelName"] == evil


def test_a_device_without_a_uuid_gets_one_of_its_own_that_stays() -> None:
    gpus = [a_gpu(i, uuid=None) for i in range(3)]
    node = a_node(gpus=gpus)
    uuids = [uuid_of(node, gpu) for gpu in gpus]
    assert len(set(uuids)) == 3
    assert uuids == [uuid_of(node, gpu) for gpu in gpus]
    assert uuid_of(a_node("other", gpus=gpus), gpus[0]) != uuids[0]


def test_energy_never_falls_whatever_the_clock_does() -> None:
    meters = EnergyMeters()
    moments = [0, 10, 10, 5, 30]
    joules = [meters.read("a", 100.0, NOW + timedelta(seconds=s)) for s in moments]
    assert joules == sorted(joules)
    assert joules[1] == 1000.0
    assert meters.read("a", None, NOW) is None


def test_nodes_of_the_generated_cluster_show_their_cases() -> None:
    replay = generated()
    with pytest.raises(ExporterDownError):
        replay.node_page("a100-80-03")
    lost = series(replay.node_page("h200-04").plain.decode())["DCGM_FI_DEV_GPU_TEMP"]
    assert sorted({s.labels["gpu"] for s in lost}) == ["0", "1", "2", "3", "4", "6", "7"]
    bad = series(replay.node_page("a100-80-02").plain.decode())["DCGM_FI_DEV_XID_ERRORS"]
    assert [(s.labels["gpu"], s.labels["err_code"], s.value) for s in bad] == [("7", "48", 48)]
    hot = series(replay.node_page("a100-80-04").plain.decode())["DCGM_FI_DEV_GPU_TEMP"]
    assert {s.labels["gpu"] for s in hot if s.value >= 85} == {"2", "3"}
    shared = series(replay.node_page("t4-03").plain.decode())["DCGM_FI_DEV_GPU_UTIL"]
    assert len(shared) == len({s.labels["pod"] for s in shared}) == 16
    assert replay.node_page("no-such-node") is None


def test_a_page_is_printed_once_per_refresh() -> None:
    replay = generated()
    first = replay.node_page("h100-01")
    assert replay.node_page("h100-01") is first
    replay.refresh(NOW + timedelta(seconds=30))
    assert replay.node_page("h100-01") is not first
    assert replay.node_page("h100-01").plain != first.plain
