"""A node's cycle against the C fake: who is up, who is down and why, and what stays true meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import pytest
from gpuwatch_exporters.device.families import utilization
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.rest import Rest
from gpuwatch_exporters.nvml.settings import Settings

from tests.exporters.nvml.collector.stage import Stage, labels, only_down, slot, told, value

BUSY = "gpuwatch_gpu_utilization_ratio"
EXPECTED, VISIBLE = "gpuwatch_gpus_expected", "gpuwatch_gpus_visible"
AVAILABLE = "gpuwatch_exporter_nvml_available"


def test_a_healthy_node(stage: Stage) -> None:
    for number, address in enumerate(stage.bus(4)):
        stage.tree.listed(address, f"GPU-{number}")
    stage.say("gpus 4", "1 util 87")
    frame = stage.cycle()
    assert told(frame) == [(0, None), (1, None), (2, None), (3, None)]
    assert value(frame.devices[1], BUSY) == 0.87
    assert [each.identity.pci_bus_id for each in frame.devices] == [slot(number) for number in range(4)]
    assert (value(frame, EXPECTED), value(frame, VISIBLE), value(frame, AVAILABLE)) == (4, 4, 1)
    for source in ("pci", "driver", "library"):
        assert value(frame, "gpuwatch_gpus_listed", source) == 4
    assert all(value(each, "gpuwatch_gpu_read_seconds") for each in frame.devices)
    assert all(not labels(each, "gpuwatch_gpu_mig_profile_free") for each in frame.devices)


def test_without_a_bus_devices_are_asked_for_by_number(stage: Stage) -> None:
    stage.say("gpus 3")
    frame = stage.cycle()
    assert told(frame) == [(0, None), (1, None), (2, None)]
    assert value(frame, EXPECTED) == 3
    assert value(frame, "gpuwatch_gpus_listed", "driver") is None  # no driver's list to be seen: unknown
    stage.restart(state_file=None)
    stage.say("gpus 3", "err 1 * 15")
    frame = stage.cycle()
    assert told(frame) == [(0, None), (2, None)]
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (3, 2)
    assert labels(frame, "gpuwatch_gpus_unidentified_info") == [("index:1", "lost")]


def test_a_lost_gpu_stays_at_0_and_the_others_go_on(stage: Stage) -> None:
    stage.bus(4)
    stage.say("gpus 4")
    stage.cycle()
    stage.say("gpus 4", "err 2 * 15", "1 util 50")
    frame = stage.until("lost", lambda frame: only_down(frame) == {2: "lost"})
    assert [each.family.name for each in frame.devices[2].values] == ["gpuwatch_gpu_suspended"]  # the kernel's word
    assert value(frame.devices[1], BUSY) == 0.5
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (4, 3)
    stage.say("gpus 4")
    stage.until("back", lambda frame: only_down(frame) == {})


def test_a_lost_gpu_is_known_after_a_restart_on_the_bus_or_off_it(stage: Stage) -> None:
    stage.bus(4)
    stage.say("gpus 4")
    before = stage.cycle().devices[3].identity
    stage.say("gpus 4", "err 3 * 15")
    stage.restart()
    frame = stage.until("lost", lambda frame: only_down(frame) == {3: "lost"})
    assert frame.devices[3].identity == before
    stage.tree.unplug(slot(3))
    stage.say("gpus 3")
    stage.restart()
    frame = stage.cycle()
    assert only_down(frame) == {3: "gone"}
    assert frame.devices[3].identity == before
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (4, 3)


def test_one_failing_call_drops_its_own_value_only(stage: Stage) -> None:
    stage.bus(2)
    stage.say("gpus 2", "err 1 nvmlDeviceGetUtilizationRates 999", "0 util 40")
    frame = stage.cycle()
    assert only_down(frame) == {}
    assert value(frame.devices[0], BUSY) == 0.4
    assert value(frame.devices[1], BUSY) is None
    assert value(frame.devices[1], "gpuwatch_gpu_mig_enabled") == 0
    again = stage.cycle()
    failures = ("nvmlDeviceGetUtilizationRates", "unknown")
    assert value(again, "gpuwatch_exporter_call_failures_total", *failures) == 2
    assert ("utilization", "failed") in labels(again.devices[1], "gpuwatch_gpu_feature_off_info")
    assert value(again, "gpuwatch_exporter_features", "utilization", "on", "") == 1
    assert value(again, "gpuwatch_exporter_features", "utilization", "off", "failed") == 1
    stage.say("gpus 2", "1 util 30")
    healed = stage.until("value back", lambda frame: value(frame.devices[1], BUSY) == 0.3)
    assert value(healed, "gpuwatch_exporter_call_failures_total", *failures) >= 2  # a counter does not fall
    assert value(healed, "gpuwatch_exporter_features", "utilization", "on", "") == 2


def test_what_a_device_does_not_support_is_off_with_its_reason_and_not_a_failure(stage: Stage) -> None:
    stage.say("gpus 1", "err 0 nvmlDeviceGetUtilizationRates 3")
    frame = stage.cycle()
    assert ("utilization", "not_supported") in labels(frame.devices[0], "gpuwatch_gpu_feature_off_info")
    assert ("nvmlDeviceGetUtilizationRates", "not_supported") not in labels(
        frame, "gpuwatch_exporter_call_failures_total"
    )


def test_a_disabled_feature_is_not_read_and_says_so(stage: Stage) -> None:
    stage.say("gpus 2")
    stage.restart(disabled=frozenset({"utilization"}))
    frame = stage.cycle()
    assert value(frame.devices[0], BUSY) is None
    assert value(frame, "gpuwatch_exporter_features", "utilization", "off", "disabled") == 2


class Broken(Group):
    help = "breaks off after its first value"

    def read(self, board: Board) -> Iterable[Value]:
        yield Value(utilization.MEMORY_CONTROLLER, (), 0.5)
        raise ZeroDivisionError


def test_a_feature_that_breaks_off_is_counted_and_the_others_go_on(stage: Stage) -> None:
    stage.say("gpus 1", "0 util 20")
    groups = {"broken": Broken(), "utilization": GROUPS.get("utilization")}
    collector = Collector(Settings("node-a", sysfs=stage.tree.sys, procfs=stage.tree.proc), groups=groups)
    collector.collect()
    frame = collector.collect()
    collector.close()
    assert value(frame.devices[0], BUSY) == 0.2
    assert value(frame, "gpuwatch_exporter_group_failures_total", "broken") == 2


def test_the_driver_goes_and_comes_back(stage: Stage) -> None:
    """Every handle dies with it, those of MIG instances and of the chip's counters too."""
    stage.bus(2)
    mig = ("gpus 2", "mig 1 1g.10gb", "mig 1 2g.20gb")
    stage.say(*mig)
    stage.cycle()
    stage.cycle()
    stage.say(*mig, "driver_gone 1")
    frame = stage.cycle()
    assert value(frame, AVAILABLE) == 0
    assert [each.up for each in frame.devices] == [False, False]
    assert {each.family.name for device in frame.devices for each in device.values} == {"gpuwatch_gpu_suspended"}
    assert value(frame, EXPECTED) == 2
    assert labels(frame, "gpuwatch_exporter_nvml_unavailable_info") == [("driver_gone",)]
    assert [reason for _, reason in told(stage.cycle())] == ["driver_gone"] * 2
    stage.say(*mig)
    frame = stage.until("back", lambda frame: only_down(frame) == {})
    assert value(frame, "gpuwatch_exporter_nvml_inits_total") == 2
    assert [len(each.instances) for each in frame.devices] == [0, 2]
    assert value(frame.devices[0], BUSY) is not None


def test_a_driver_that_is_not_loaded(stage: Stage) -> None:
    stage.bus(1)
    stage.tree.listed(slot(0), "GPU-1234")
    stage.say("init_err 9")
    frame = stage.cycle()
    assert value(frame, AVAILABLE) == 0
    assert labels(frame, "gpuwatch_exporter_nvml_unavailable_info") == [("driver_not_loaded",)]
    assert told(frame) == [(None, "driver_not_loaded")]
    assert frame.devices[0].identity.uuid == "GPU-1234"
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (1, 0)
    assert "NVML is not available: driver_not_loaded" in frame.notes


def test_a_node_without_a_gpu(stage: Stage) -> None:
    stage.say("gpus 0")
    frame = stage.cycle()
    assert frame.devices == ()
    assert (value(frame, AVAILABLE), value(frame, EXPECTED), value(frame, VISIBLE)) == (1, 0, 0)


def test_released_devices_are_down_and_nothing_is_known_of_the_library(stage: Stage) -> None:
    stage.bus(2)
    stage.say("gpus 2")
    stage.cycle()
    assert stage.collector.release()
    frame = stage.cycle()
    assert only_down(frame) == {0: "released", 1: "released"}
    assert value(frame, "gpuwatch_exporter_collecting") == 0
    assert value(frame, EXPECTED) == 2
    assert value(frame, VISIBLE) is None
    stage.collector.resume()
    frame = stage.cycle()
    assert only_down(frame) == {}
    assert value(frame, "gpuwatch_exporter_collecting") == 1


def test_a_gpu_in_a_virtual_machines_hands_is_not_ours_and_an_unbound_one_is(stage: Stage) -> None:
    stage.bus(3)
    stage.tree.device(slot(1), driver="vfio-pci")
    stage.tree.device(slot(2), driver=None)
    stage.say("gpus 1")
    frame = stage.cycle()
    assert told(frame) == [(0, None)]
    assert value(frame, EXPECTED) == 2
    assert labels(frame, "gpuwatch_gpus_unidentified_info") == [(slot(2), "unbound")]


def test_sixteen_gpus_with_seven_instances_each(stage: Stage) -> None:
    stage.say("gpus 16", *(f"mig {gpu} 1 9856" for gpu in range(16) for _ in range(7)))
    frame = stage.until("all read", lambda frame: not only_down(frame) and len(frame.devices) == 16)
    assert [len(each.instances) for each in frame.devices] == [7] * 16
    assert len({each.uuid for device in frame.devices for each in device.instances}) == 112


def test_a_sleeping_gpu_gets_not_one_call(stage: Stage) -> None:
    stage.bus(3)
    stage.tree.listed(slot(1), "GPU-asleep", minor=1)
    stage.tree.device(slot(1), status="suspended")
    stage.say("gpus 3")
    before = stage.calls(1)
    for _ in range(3):
        frame = stage.cycle()
    assert stage.calls(1) == before
    assert stage.calls(0) > 0
    asleep = next(each for each in frame.devices if each.identity.uuid == "GPU-asleep")
    assert (asleep.up, asleep.down_reason) == (False, "suspended")
    assert value(asleep, "gpuwatch_gpu_suspended") == 1
    assert value(frame.devices[0], "gpuwatch_gpu_suspended") == 0
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (3, 3)
    stage.tree.device(slot(1), status="active")
    frame = stage.cycle()
    assert only_down(frame) == {}
    assert stage.calls(1) > before


def test_a_gpu_that_hangs_in_the_library_is_down_and_back_when_it_answers(stage: Stage) -> None:
    stage.bus(3)
    stage.say("gpus 3")
    stage.restart(device_timeout=0.3)
    assert only_down(stage.cycle()) == {}
    stage.say("gpus 3", "hang 1", "2 util 44")
    began = time.monotonic()
    frame = stage.cycle()
    assert time.monotonic() - began < 1
    assert only_down(frame) == {1: "hung"}
    assert value(frame.devices[2], BUSY) == 0.44
    stage.say("gpus 3")
    stage.until("back", lambda frame: only_down(frame) == {})


def test_a_gpu_that_may_sleep_is_left_alone_until_something_wakes_it(stage: Stage) -> None:
    stage.bus(2)
    laptop = {"control": "auto"}
    stage.tree.device(slot(1), **laptop)
    stage.say("gpus 2", "1 procs 0", "1 util 0")
    stage.collector._rest = Rest(idle_seconds=0)
    assert only_down(stage.cycle()) == {}
    frame = stage.cycle()
    assert only_down(frame) == {1: "resting"}
    assert value(frame, VISIBLE) == 2
    assert value(frame, "gpuwatch_exporter_nvml_inits_total") == 2  # its device file is closed
    calls = stage.calls(1)
    stage.cycle()
    stage.tree.device(slot(1), status="suspended", **laptop)
    assert only_down(stage.cycle()) == {1: "suspended"}
    assert stage.calls(1) == calls
    stage.say("gpus 2", "1 procs 0", f"proc 1 {os.getpid()} 100 -1")
    stage.tree.device(slot(1), status="active", **laptop)
    for _ in range(3):
        assert only_down(stage.cycle()) == {}


def test_a_device_that_the_library_does_not_know_makes_it_open_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch_exporters.nvml.reopening.FIRST_SECONDS", 0.1)
    stage.restart()
    stage.bus(2)
    stage.tree.listed(slot(1), "GPU-new", minor=1)
    stage.say("gpus 1")
    frame = stage.cycle()
    assert told(frame) == [(0, None), (None, "not_listed")]
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (2, 1)
    stage.until("opened anew", lambda frame: value(frame, "gpuwatch_exporter_nvml_inits_total") == 2)


def test_without_a_state_file_it_is_told_that_nothing_is_remembered(stage: Stage) -> None:
    stage.say("gpus 1")
    assert value(stage.cycle(), "gpuwatch_exporter_features", "memory_of_gpus", "on", "") == 1
    stage.restart(state_file=None)
    assert value(stage.cycle(), "gpuwatch_exporter_features", "memory_of_gpus", "off", "no_file") == 1
