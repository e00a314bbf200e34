"""The words of dcgm-exporter, read back by what reads dcgm-exporter."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.compat.dcgm import DcgmNames
from gpuwatch_exporters.device.compat.dcgm_rows import ROWS
from gpuwatch_exporters.device.family import FAMILIES
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Workload
from gpuwatch_exporters.nvml import groups
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.dialects.dcgm import TABLE, DcgmDialect
from gpuwatch.model.observations import Reading, Sample
from tests.exporters.compat.frames import FIRST, SECOND, cut, frame, pod, values, whole
from tests.exporters.compat.test_dcgm_exporter_files import NEW, OLD, names, read_by_rules

GENERATIONS = pytest.mark.parametrize("vocabulary", ["dcgm", "dcgm-4.9"])
MIB = 1 << 20
# What the exporter of NVIDIA computes over a window of its own: not to be had from a frame.
ITS_OWN = {"DCGM_EXP_XID_ERRORS_COUNT"}


def names_of(vocabulary: str) -> DcgmNames:
    found = COMPATS.get(vocabulary)
    assert isinstance(found, DcgmNames)
    return found


def samples(of: Frame, vocabulary: str = "dcgm") -> list[Sample]:
    # The parser gives counters whose names do not end in _total that ending; all samples here bear the family's name.
    return [
        Sample(metric=each.name, labels=sample.labels, value=sample.value)
        for each in text_string_to_metric_families(names_of(vocabulary).render(of))
        for sample in each.samples
    ]


def named(of: Iterable[Sample], metric: str) -> list[Sample]:
    return [each for each in of if each.metric == metric]


def readings(of: Frame, vocabulary: str) -> dict[tuple[str | None, str | None, str], set[float]]:
    """(uuid, instance, canonical field) -> values."""
    known = [each for each in samples(of, vocabulary) if each.metric in TABLE]
    observed = DcgmDialect().read(known)
    assert observed.dropped == ()
    out: dict[tuple[str | None, str | None, str], set[float]] = {}
    for each in observed.readings:
        assert isinstance(each, Reading)
        out.setdefault((each.device.uuid, each.device.mig_id, each.field), set()).add(each.value)
    return out


def test_every_row_maps_a_family_that_is_declared_with_as_many_labels() -> None:
    for row in ROWS:
        for name in (*row.families, *((row.otherwise,) if row.otherwise else ())):
            labels = FAMILIES.get(name).labels
            assert len(labels) == (1 if row.weights is not None else len(row.labels)), row.old
        for name_ in (row.old, row.new):
            assert name_ is None or re.fullmatch(r"DCGM_FI_(DEV|PROF)_[A-Z0-9_]+", name_)
    old, new = [row.old for row in ROWS if row.old], [row.new for row in ROWS if row.new]
    assert len(old) == len(set(old))
    assert len(new) == len(set(new))


def test_label_values_of_rows_are_those_that_a_backend_gives() -> None:
    """A misspelled label value would be a metric that never comes."""
    given = {(field.family, field.labels) for topic in TOPICS.values() for field in topic.fields.values()}
    bits = {
        label for topic in TOPICS.values() for field in topic.fields.values() for label in (field.bits or {}).values()
    }
    for row in ROWS:
        if row.weights is not None:
            assert set(row.weights) == bits
        elif row.labels:
            assert {(name, row.labels) for name in row.families} <= given, row.old


def test_label_values_are_those_of_the_nvml_exporter_too() -> None:
    """Both backends name a thing alike, or compatible names would come from one of them only."""
    folder = Path(groups.__file__).parents[1]
    sources = "".join(each.read_text() for each in folder.rglob("*.py")).lower()  # some are made from constants
    for row in ROWS:
        for label in (*row.labels, *(row.weights or ())):
            assert f'"{label}"' in sources, (row.old, label)
    given = {label for topic in TOPICS.values() for field in topic.fields.values() for label in field.labels}
    assert {label for label in given if f'"{label}"' not in sources} <= {"0"}  # the fan's number


def test_the_lists_of_counters_and_the_rules_are_covered() -> None:
    seen = values({"xid_errors_total{31}": 1.0, "xid_last_timestamp_seconds{31}": 5.0, "dcgm_health{mem}": 0.0})
    full = frame(replace(whole(), values=(*whole().values, *seen)), cut())
    printed = {each.metric for vocabulary in ("dcgm", "dcgm-4.9") for each in samples(full, vocabulary)}
    assert names(OLD) - printed == ITS_OWN
    assert names(NEW) - printed == ITS_OWN
    assert read_by_rules() - printed == set()


@GENERATIONS
def test_our_own_reader_finds_the_same_state(vocabulary: str) -> None:
    found = readings(frame(), vocabulary)
    first, second = FIRST.uuid, SECOND.uuid
    assert sorted(found[first, None, "utilization_ratio"]) == pytest.approx([0.87])
    assert found[first, None, "engine_active_ratio"] == {0.412345, 0.4}
    assert found[first, None, "memory_used_bytes"] == {61234 * MIB}
    assert found[first, None, "memory_free_bytes"] == {19800 * MIB}
    assert found[first, None, "memory_reserved_bytes"] == {525 * MIB}
    assert found[first, None, "memory_total_bytes"] == {81559 * MIB}
    assert found[first, None, "power_watts"] == {612.44}
    assert found[first, None, "power_limit_watts"] == {700}
    assert found[first, None, "temperature_celsius"] == {61}
    assert found[first, None, "row_remap_failed"] == {0}
    assert found[second, "1", "engine_active_ratio"] == {0.5, 0.4}
    assert found[second, "5", "engine_active_ratio"] == {0.125, 0.4}
    assert not any(field == "utilization_ratio" for uuid, _, field in found if uuid == second)


def test_both_generations_tell_the_same_state() -> None:
    old, new = readings(frame(), "dcgm"), readings(frame(), "dcgm-4.9")
    assert old.keys() == new.keys()
    for key, expected in old.items():
        assert sorted(new[key]) == pytest.approx(sorted(expected)), key


def test_units_of_the_older_names() -> None:
    page = samples(frame(whole()))
    told = {each.metric: each.value for each in page}
    assert told["DCGM_FI_DEV_GPU_UTIL"] == 87
    assert told["DCGM_FI_DEV_DEC_UTIL"] == 25
    assert told["DCGM_FI_DEV_FB_USED"] == 61234
    assert told["DCGM_FI_DEV_SM_CLOCK"] == 1980
    assert told["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == 83412345678
    assert told["DCGM_FI_DEV_POWER_VIOLATION"] == 2_500_000_000
    assert told["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"] == pytest.approx(90_000)
    assert told["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] == 0b1100
    assert told["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"] == 1


def test_units_of_the_newer_names() -> None:
    told = {each.metric: each.value for each in samples(frame(whole()), "dcgm-4.9")}
    assert told["DCGM_FI_DEV_GPU_UTIL_RATIO"] == 0.87
    assert told["DCGM_FI_DEV_FB_USED_BYTES"] == 61234 * MIB
    assert told["DCGM_FI_DEV_SM_CLOCK_HERTZ"] == 1980e6
    assert told["DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"] == 83412345.678
    assert told["DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL"] == 2.5
    assert told["DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"] == 90_000  # renamed, and in MB/s still
    assert told["DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND"] == 90e9


def test_each_name_of_nvlink_errors_has_its_newer_one() -> None:
    kinds = {"nvlink_errors_total{crc_flit}": 1.0, "nvlink_errors_total{crc_data}": 2.0,
             "nvlink_errors_total{replay}": 3.0, "nvlink_errors_total{recovery}": 4.0}  # fmt: skip
    device = DeviceFrame(FIRST, up=True, values=values(kinds))
    old, new = ({each.metric: each.value for each in samples(frame(device), v)} for v in ("dcgm", "dcgm-4.9"))
    assert {name.replace("_COUNT_TOTAL", "_TOTAL"): amount for name, amount in old.items()} == new
    assert sorted(new.values()) == [1, 2, 3, 4]


def test_labels_of_the_older_generation() -> None:
    [power] = named(samples(frame(whole(), workloads=(pod("job-0"),))), "DCGM_FI_DEV_POWER_USAGE")
    assert power.labels == {
        "gpu": "0", "UUID": FIRST.uuid, "pci_bus_id": "00000000:17:00.0", "device": "nvidia0",
        "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node-a", "DCGM_FI_DRIVER_VERSION": "570.1",
        "container": "main", "namespace": "ml", "pod": "job-0",
    }  # fmt: skip


def test_labels_of_the_newer_generation() -> None:
    [power] = named(samples(frame(whole(SECOND)), "dcgm-4.9"), "DCGM_FI_DEV_BOARD_POWER_WATTS")
    assert power.labels == {
        "gpu": "1", "UUID": SECOND.uuid, "pci_bus_id": "00000000:3D:00.0", "device": "nvidia1",
        "modelName": "NVIDIA H100 80GB HBM3", "hostname": "node-a", "DCGM_FI_SYSTEM_DRIVER_VERSION": "570.1",
    }  # fmt: skip


@GENERATIONS
def test_the_power_of_a_cut_board_stands_on_each_instance_and_its_own_series_are_gone(vocabulary: str) -> None:
    """As dcgm-exporter has it; who reads it takes the greatest of a board's values."""
    page = samples(frame(cut()), vocabulary)
    assert {(each.labels["GPU_I_ID"], each.labels["GPU_I_PROFILE"]) for each in page} == {
        ("1", "3g.40gb"),
        ("5", "1g.10gb"),
    }
    power = "DCGM_FI_DEV_POWER_USAGE" if vocabulary == "dcgm" else "DCGM_FI_DEV_BOARD_POWER_WATTS"
    assert [each.value for each in named(page, power)] == [612.44, 612.44]
    assert not any("GPU_UTIL" in each.metric or "PCIE_TX" in each.metric for each in page)


def test_each_pod_of_a_shared_device_has_a_series_and_no_series_comes_twice() -> None:
    workloads = (pod("a"), pod("b"), pod("b"), replace(pod("b"), source="slurm_cgroup"))
    page = samples(frame(whole(), workloads=workloads))
    power = named(page, "DCGM_FI_DEV_POWER_USAGE")
    assert [each.labels["pod"] for each in power] == ["a", "b"]
    every = [(each.metric, tuple(sorted(each.labels.items()))) for each in page]
    assert len(every) == len(set(every))


def test_a_pod_of_an_instance_is_on_that_instance_alone_one_of_the_board_on_all() -> None:
    page = samples(frame(cut(), workloads=(pod("a", SECOND.uuid, "5"),)))
    assert {each.labels["GPU_I_ID"]: each.labels.get("pod") for each in page} == {"1": None, "5": "a"}
    page = samples(frame(cut(), workloads=(pod("a", SECOND.uuid),)))
    assert {each.labels.get("pod") for each in page} == {"a"}


def test_a_job_is_a_job_and_a_process_is_nobody() -> None:
    job = Workload(FIRST.uuid, job_id="4711", user="ann", source="slurm_cgroup")
    assert {each.labels["hpc_job"] for each in samples(frame(whole(), workloads=(job,)))} == {"4711"}
    process = Workload(FIRST.uuid, user="ann", container="c", source="process")
    page = samples(frame(whole(), workloads=(process,)))
    assert page
    assert not any({"pod", "hpc_job", "container"} & each.labels.keys() for each in page)


def test_a_device_that_is_down_has_no_series_but_its_xids() -> None:
    down = DeviceFrame(SECOND, up=False, down_reason="lost")
    assert {each.labels["gpu"] for each in samples(frame(whole(), down))} == {"0"}
    seen = values({"xid_errors_total{79}": 1.0, "xid_last_timestamp_seconds{79}": 900.0})
    page = samples(frame(replace(down, values=seen)))
    assert {each.metric: each.value for each in page} == {"DCGM_FI_DEV_XID_ERRORS": 79, "DCGM_EXP_XID_ERRORS_TOTAL": 1}


def test_what_was_not_read_is_not_printed() -> None:
    bare = DeviceFrame(FIRST, up=True, values=values({"temperature_celsius": 61.0, "pcie_replays_total": 1.0}))
    assert [each.metric for each in samples(frame(bare))] == [
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    ]


def test_one_direction_of_traffic_is_no_total() -> None:
    sent = DeviceFrame(FIRST, up=True, values=values({"nvlink_transmit_bytes_per_second": 1e9}))
    assert [each.metric for each in samples(frame(sent))] == ["DCGM_FI_PROF_NVLINK_TX_BYTES"]


def test_traffic_that_came_as_one_number_stands_in_for_the_two_directions() -> None:
    one = DeviceFrame(FIRST, up=True, values=values({"nvlink_traffic_bytes_per_second": 90e9}))
    [traffic] = samples(frame(one))
    assert (traffic.metric, traffic.value) == ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", pytest.approx(90_000))


def test_the_last_xid_is_that_of_the_latest_time() -> None:
    assert not named(samples(frame(whole())), "DCGM_FI_DEV_XID_ERRORS")
    seen = {"xid_errors_total{31}": 2.0, "xid_last_timestamp_seconds{31}": 1000.0,
            "xid_errors_total{79}": 1.0, "xid_last_timestamp_seconds{79}": 900.0}  # fmt: skip
    page = samples(frame(DeviceFrame(FIRST, True, values=values(seen))))
    [last] = named(page, "DCGM_FI_DEV_XID_ERRORS")
    assert (last.value, last.labels["err_code"]) == (31, "31")
    assert last.labels["err_msg"]
    assert {each.labels["xid"]: each.value for each in named(page, "DCGM_EXP_XID_ERRORS_TOTAL")} == {"31": 2, "79": 1}


@GENERATIONS
def test_the_checks_of_dcgm_are_read_as_health(vocabulary: str) -> None:
    device = DeviceFrame(FIRST, up=True, values=values({"dcgm_health{mem}": 20.0, "dcgm_health{pcie}": 0.0}))
    assert readings(frame(device), vocabulary) == {(FIRST.uuid, None, "health_status"): {0.0, 20.0}}
    assert {each.labels["health_watch"]: each.value for each in samples(frame(device), vocabulary)} == {
        "MEM": 20,
        "PCIE": 0,
    }


@GENERATIONS
def test_an_empty_frame_prints_nothing(vocabulary: str) -> None:
    assert names_of(vocabulary).render(Frame("node-a")) == ""


@GENERATIONS
def test_promtool_reads_it(vocabulary: str, promtool_program: str, tmp_path: Path) -> None:
    text = names_of(vocabulary).render(frame(workloads=(pod("a"), pod("b"))))
    done = subprocess.run(
        [promtool_program, "check", "metrics"], input=text, capture_output=True, text=True, timeout=30
    )
    # 3: it read everything and dislikes names, which are not ours to choose; 1: it could not read.
    assert done.returncode in (0, 3), done.stderr
    assert "error while linting" not in done.stderr
