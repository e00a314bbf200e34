"""Cycles on a host engine: values in our units, and each fault by itself."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from gpuwatch_exporters.dcgm import collector as module
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.device.family import FAMILIES

from tests.exporters.dcgm_backend.conftest import Host, feature, of_node, value

MIB = 1 << 20
GPU, GPU_INSTANCE = 1, 4
BAD_PARAMETER, NOT_SUPPORTED, NO_PERMISSION, LOST = -1, -6, -17, -18
PROFILING_NOT_SUPPORTED, TIMEOUT, UNINITIALIZED, NOT_VALID = -36, -11, -10, -21
INT32_BLANKS = [0x7FFFFFF0 + offset for offset in range(4)]
INT64_BLANKS = [0x7FFFFFFFFFFFFFF0 + offset for offset in range(16)]
FP64_BLANKS = [140737488355328.0 + offset for offset in range(4)]


def test_every_field_is_watched_once_and_has_a_family_with_its_labels() -> None:
    every = [id_ for topic in TOPICS.values() for id_ in topic.fields]
    assert len(every) == len(set(every))
    for topic in TOPICS.values():
        for field in topic.fields.values():
            labels = 1 if field.bits is not None else len(field.labels)
            assert labels == len(FAMILIES.get(field.family).labels), field


def test_values_come_in_base_units(host: Host) -> None:
    host.engine.samples[GPU, 0] |= {100: 1980, 156: 83412345678, 241: 2_500_000_000, 449: 90_000}
    host.engine.samples[GPU, 0] |= {1009: 2_100_000_000, 140: 0, 158: 87, 112: 0b100000}
    frame = host.cycle()
    assert value(frame, "utilization_ratio") == pytest.approx(0.87)
    assert value(frame, "memory_used_bytes") == 61234 * MIB
    assert value(frame, "power_watts") == 612.44
    assert value(frame, "energy_joules_total") == pytest.approx(83412345.678)
    assert value(frame, "clock_hertz", "sm") == 1980e6
    assert value(frame, "throttle_seconds_total", "thermal") == pytest.approx(2.5)
    assert value(frame, "nvlink_traffic_bytes_per_second") == pytest.approx(90e9)
    assert value(frame, "pcie_transmit_bytes_per_second") == 2.1e9
    assert value(frame, "temperature_limit_celsius", "slowdown") == 87
    assert value(frame, "memory_temperature_celsius") is None  # 0: there is no such sensor
    assert value(frame, "throttle_active", "sw_thermal_slowdown") == 1
    assert value(frame, "throttle_active", "hw_thermal_slowdown") == 0


def test_who_the_devices_are(host: Host) -> None:
    first, second = host.cycle().devices
    assert (first.identity.index, first.identity.uuid, first.identity.pci_bus_id) == (0, "GPU-aaaa", "0000:18:00.0")
    assert second.identity.pci_bus_id == "0000:2a:00.0"
    assert (first.identity.minor, first.identity.driver_version) == (0, "570.86.15")
    assert first.up
    assert second.up


def test_instances_have_their_own_values_and_the_cut_board_has_no_utilization(host: Host) -> None:
    host.uuids = {("GPU-bbbb", 1): ("MIG-one",), ("GPU-bbbb", 5): ("MIG-a", "MIG-b")}
    frame = host.cycle()
    first, second = frame.devices[1].instances
    assert (first.id, first.uuid, first.profile) == ("1", "MIG-one", "3g.40gb")
    assert (second.id, second.uuid, second.profile) == ("5", "", "1g.10gb")  # two compute instances: no one uuid
    shares = {each.family.name: each.number for each in first.values}
    assert shares["gpuwatch_gpu_graphics_active_ratio"] == 0.5
    assert shares["gpuwatch_gpu_memory_used_bytes"] == 9000 * MIB
    assert value(frame, "utilization_ratio", gpu=1) is None
    assert value(frame, "power_watts", gpu=1) == 612.44
    assert not any("power" in each.family.name for each in first.values)


@pytest.mark.parametrize("blank", [*INT32_BLANKS, *INT64_BLANKS, *FP64_BLANKS, float("nan"), float("inf"), "text"])
def test_a_blank_is_no_value_and_its_neighbors_stay(host: Host, blank: float | str) -> None:
    host.engine.samples[GPU, 0][155] = blank
    frame = host.cycle()
    assert value(frame, "power_watts") is None
    assert value(frame, "temperature_celsius") == 61
    assert frame.devices[0].up


def test_a_number_beside_the_blanks_is_a_number(host: Host) -> None:
    host.engine.samples[GPU, 0][156] = 0x7FFFFFF4
    assert value(host.cycle(), "energy_joules_total") == pytest.approx(0x7FFFFFF4 / 1000)


@pytest.mark.parametrize("code", [-1, -3, NOT_SUPPORTED, -14, NO_PERMISSION, LOST, -99])
def test_an_error_code_is_no_value(host: Host, code: int) -> None:
    import dcgm_fake

    for field in list(host.engine.samples[GPU, 0]):
        if field != 150:
            host.engine.samples[GPU, 0][field] = dcgm_fake.Failed(code)
    host.open(disabled=frozenset(("health",)))
    frame = host.cycle()
    assert {each.family.name for each in frame.devices[0].values} == {
        "gpuwatch_gpu_temperature_celsius",
        "gpuwatch_gpu_xid_events_total",
    }


def test_a_share_beyond_one_is_dropped_and_counted_a_little_above_is_one(host: Host) -> None:
    host.engine.samples[GPU, 0] |= {1001: 1.004, 1002: 1.8, 191: 105}
    frame = host.cycle()
    assert value(frame, "graphics_active_ratio") == 1.0
    assert value(frame, "sm_active_ratio") is None
    assert value(frame, "fan_speed_ratio", "0") == 1.05  # of its rated speed
    assert of_node(frame, "gpuwatch_exporter_dcgm_dropped_values_total", "out_of_range") == 1


def test_values_that_stopped_coming_are_not_repeated(host: Host) -> None:
    assert of_node(host.cycle(), "gpuwatch_exporter_dcgm_dropped_values_total", "stale") == 0
    host.engine.sampled_at = host.clock.seconds()
    host.clock.forward(20)
    assert host.cycle().devices[0].up
    host.clock.forward(200)
    frame = host.cycle()
    assert [each.down_reason for each in frame.devices] == ["no_values", "no_values"]
    assert [each.family.name for each in frame.devices[0].values] == ["gpuwatch_gpu_xid_events_total"]
    assert feature(frame, "power") == {("off", "stale"): 2}


def test_a_topic_that_is_refused_leaves_the_others(host: Host) -> None:
    host.engine.refused_watches = dict.fromkeys(range(1001, 1017), PROFILING_NOT_SUPPORTED)
    host.engine.samples[GPU, 0][1001] = 0.5
    frame = host.cycle()
    assert feature(frame, "profiling") == {("off", "profiling_not_supported"): 2}
    assert value(frame, "graphics_active_ratio") is None
    assert value(frame, "power_watts") == 612.44


def test_a_field_that_an_older_dcgm_does_not_know_leaves_its_neighbors(host: Host) -> None:
    host.engine.unknown_fields = {157, 1523}
    frame = host.cycle()
    assert value(frame, "power_watts") == 612.44
    assert feature(frame, "power") == {("on", ""): 2}
    assert feature(frame, "recovery") == {("off", "badparam"): 2}


def test_gpus_that_cannot_be_profiled_in_one_group_are_in_groups_of_their_own(host: Host) -> None:
    host.engine.mixed_groups_refused_for = {1001}
    host.engine.samples[GPU, 0][1001] = 0.25
    frame = host.cycle()
    assert value(frame, "graphics_active_ratio") == 0.25
    assert frame.devices[1].instances[0].values


def test_more_instances_than_a_group_of_an_older_dcgm_holds(host: Host) -> None:
    from dcgm_fake import Gpu, Instance

    for gpu in range(2, 12):
        slices = [Instance(10 * gpu + each, each, "MIG 1g.10gb") for each in range(7)]
        host.engine.gpus[gpu] = Gpu(f"GPU-{gpu:04}", gpu, f"00000000:{gpu:02X}:00.0", instances=slices)
        host.engine.samples[GPU, gpu] = {155: 300.0}
        for each in slices:
            host.engine.samples[GPU_INSTANCE, each.id] = {252: 9000}
    frame = host.cycle()
    assert [len(each.instances) for each in frame.devices] == [0, 2, *[7] * 10]
    assert all(each.values for device in frame.devices for each in device.instances)
    assert feature(frame, "memory") == {("on", ""): 12}


def test_a_disabled_topic_is_not_watched(host: Host) -> None:
    host.open(disabled=frozenset(("profiling",)))
    frame = host.cycle()
    assert 1001 not in host.engine.watched_fields((GPU, 0))
    assert 155 in host.engine.watched_fields((GPU, 0))
    assert feature(frame, "profiling") == {("off", "disabled"): 2}


def test_a_lost_gpu_stays_at_zero_and_the_others_go_on(host: Host) -> None:
    import dcgm_fake

    host.cycle()
    host.engine.gpus[0].status = 4
    host.engine.samples[GPU, 0] = dict.fromkeys(host.engine.samples[GPU, 0], dcgm_fake.Failed(LOST))
    frame = host.cycle()
    assert (frame.devices[0].up, frame.devices[0].down_reason) == (False, "lost")
    assert frame.devices[1].up
    assert of_node(frame, "gpuwatch_gpus_expected") == 2
    assert of_node(frame, "gpuwatch_gpus_visible") == 1


def test_a_lost_gpu_is_the_same_one_after_the_layout_of_another_changed(host: Host) -> None:
    host.cycle()
    host.engine.gpus[0].status = 4
    host.engine.gpus[1].instances.pop()
    lost, other = host.cycle().devices
    assert (lost.identity.uuid, lost.down_reason) == ("GPU-aaaa", "lost")
    assert len(other.instances) == 1


def test_a_gpu_of_which_nothing_is_told_is_expected_and_watched_when_it_is(host: Host) -> None:
    host.engine.gpus[0].status = 4
    frame = host.cycle()
    assert [each.identity.uuid for each in frame.devices] == ["GPU-bbbb"]
    assert of_node(frame, "gpuwatch_gpus_unidentified_info", "dcgm:0", "not_listed") == 1
    assert of_node(frame, "gpuwatch_gpus_expected") == 2
    watches = host.engine.calls["dcgmWatchFields"]
    host.cycle()
    assert host.engine.calls["dcgmWatchFields"] == watches
    host.engine.gpus[0].status = 1
    frame = host.cycle()
    assert [each.identity.uuid for each in frame.devices] == ["GPU-aaaa", "GPU-bbbb"]
    assert value(frame, "power_watts") == 612.44


def test_a_gpu_that_is_no_longer_listed_is_missed_also_after_a_restart(host: Host, tmp_path: Path) -> None:
    state = tmp_path / "dcgm.json"
    host.open(state_file=state)
    host.cycle()
    assert len(json.loads(state.read_text())["gpus"]) == 2
    del host.engine.gpus[0]
    host.open(state_file=state)
    frame = host.cycle()
    missing = frame.devices[0]
    assert (missing.identity.uuid, missing.up, missing.down_reason) == ("GPU-aaaa", False, "not_listed")
    assert of_node(frame, "gpuwatch_gpus_expected") == 2
    assert of_node(frame, "gpuwatch_gpus_visible") == 1


def test_a_gpu_on_the_bus_that_dcgm_does_not_list_is_expected(host: Host, tmp_path: Path) -> None:
    for address in ("0000:18:00.0", "0000:2a:00.0", "0000:3c:00.0"):
        folder = tmp_path / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x10de\n")
        (folder / "class").write_text("0x030200\n")
    assert of_node(host.cycle(), "gpuwatch_gpus_expected") == 3
    host.open(hostengine="elsewhere:5555")  # then this host's bus is not asked
    assert of_node(host.cycle(), "gpuwatch_gpus_expected") == 2


@pytest.mark.parametrize("code", [NOT_VALID, UNINITIALIZED, TIMEOUT])
def test_a_host_engine_that_went_away_is_connected_anew_and_watched_again(host: Host, code: int) -> None:
    host.cycle()
    host.engine.refused["dcgmGetAllDevices"] = code
    gone = host.cycle()
    assert of_node(gone, "gpuwatch_exporter_dcgm_available") == 0
    assert [each.up for each in gone.devices] == [False, False]
    assert {value.family.name for each in gone.devices for value in each.values} == {"gpuwatch_gpu_xid_events_total"}
    del host.engine.refused["dcgmGetAllDevices"]
    host.engine.forget()
    host.clock.forward(10)
    frame = host.cycle()
    assert value(frame, "power_watts") == 612.44
    assert of_node(frame, "gpuwatch_exporter_dcgm_connections_total") == 2
    assert of_node(frame, "gpuwatch_exporter_dcgm_available") == 1
    # What went with the old connection is not given back to the new one.
    assert not any(function.startswith(("dcgmUnwatch", "dcgmGroup")) for function, _ in host.collector._engine.failures)


def test_tries_to_connect_become_rarer_up_to_two_cycles(host: Host) -> None:
    host.engine.alive = False
    tries = []
    for _ in range(120):
        before = host.collector._engine.failures.total() if host.collector else 0
        frame = host.cycle()
        tries.append(host.collector._engine.failures.total() > before)  # type: ignore[union-attr]
        host.clock.forward(1)
    assert of_node(frame, "gpuwatch_exporter_dcgm_unavailable_info", "connection_not_valid") == 1
    assert tries[:8] == [True, True, False, True, False, False, False, True]
    assert 6 < sum(tries) < 14
    host.engine.alive = True
    host.clock.forward(20)
    assert host.cycle().devices[0].up


def test_a_layout_that_changes_is_watched_anew_and_old_groups_are_given_back(host: Host) -> None:
    host.cycle()
    groups = host.engine.group_count()
    import dcgm_fake

    for turn in range(5):
        host.engine.gpus[0].instances = [dcgm_fake.Instance(20 + turn, 2, "MIG 1g.10gb")]
        host.engine.samples[GPU_INSTANCE, 20 + turn] = {1001: 0.75}
        frame = host.cycle()
        [part] = frame.devices[0].instances
        assert part.values[0].number == 0.75
        assert value(frame, "utilization_ratio") is None
        assert host.engine.group_count() <= groups + 2
    host.engine.gpus[0].instances = []
    assert value(host.cycle(), "utilization_ratio") == pytest.approx(0.87)
    assert host.engine.group_count() <= groups


def test_nothing_is_watched_anew_while_nothing_changes(host: Host) -> None:
    host.cycle()
    watches = host.engine.calls["dcgmWatchFields"]
    attributes = host.engine.calls["dcgmGetDeviceAttributes"]
    for _ in range(5):
        host.cycle()
    assert host.engine.calls["dcgmWatchFields"] == watches
    assert host.engine.calls["dcgmGetDeviceAttributes"] == attributes


def test_an_instance_that_goes_between_two_calls_takes_no_other_values_with_it(host: Host) -> None:
    host.cycle()
    host.engine.then["dcgmGetGpuStatus"] = lambda: host.engine.gpus[1].instances.clear()
    frame = host.cycle()
    assert value(frame, "power_watts") == 612.44
    assert [each.values for each in frame.devices[1].instances] == [(), ()]
    assert value(frame, "memory_used_bytes", gpu=1) == 61234 * MIB  # asked together with the instances
    assert host.cycle().devices[1].instances == ()


def test_what_is_released_is_not_touched_until_it_is_resumed(host: Host) -> None:
    collector = host.open(embedded=True)
    host.cycle()
    collector.release()
    before = host.engine.calls.total()
    frame = host.cycle()
    assert host.engine.calls.total() == before
    assert of_node(frame, "gpuwatch_exporter_collecting") == 0
    assert [each.down_reason for each in frame.devices] == ["released", "released"]
    collector.resume()
    assert host.cycle().devices[0].up
    assert host.engine.connected_to == [("embedded", False)] * 2


def test_a_release_while_a_call_hangs_is_done_after_it(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELEASE_SECONDS", 0.02)
    collector = host.open()
    host.cycle()
    hangs, ends = threading.Event(), threading.Event()
    host.engine.then["dcgmGetAllDevices"] = lambda: (hangs.set(), ends.wait(10))
    cycle = threading.Thread(target=host.cycle)
    cycle.start()
    assert hangs.wait(10)
    assert not collector.release()
    ends.set()
    cycle.join(10)
    before = host.engine.calls.total()
    assert [each.down_reason for each in host.cycle().devices] == ["released", "released"]
    assert host.engine.calls.total() == before + 1  # the goodbye
    collector.resume()
    assert host.cycle().devices[0].up


def test_a_socket_is_told_as_one(host: Host) -> None:
    host.open(hostengine="unix:/run/dcgm.sock")
    host.cycle()
    assert host.engine.connected_to == [("/run/dcgm.sock", True)]


def test_a_function_that_older_bindings_lack_is_counted_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    import dcgm_agent

    monkeypatch.delattr(dcgm_agent, "dcgmGetGpuStatus")
    host.cycle()
    frame = host.cycle()
    assert of_node(frame, "gpuwatch_exporter_call_failures_total", "dcgmGetGpuStatus", "function_not_found") == 1
    assert [each.up for each in frame.devices] == [True, True]
    host.engine.samples[GPU, 0].clear()  # a lost one has no values
    assert [each.down_reason for each in host.cycle().devices] == ["no_values", None]


def test_failed_calls_are_counted_by_function_and_error(host: Host) -> None:
    host.engine.refused["dcgmGetGpuStatus"] = -3
    host.cycle()
    frame = host.cycle()
    assert of_node(frame, "gpuwatch_exporter_call_failures_total", "dcgmGetGpuStatus", "generic_error") == 4
    assert frame.devices[0].up
