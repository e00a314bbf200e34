"""MIG layouts as they are and as they change while the exporter runs."""

from __future__ import annotations

from gpuwatch_exporters.device.frame import Frame, InstanceFrame

from tests.exporters.nvml.collector.stage import Stage, labels, only_down, value

FREE = "gpuwatch_gpu_mig_profile_free"


def instances(frame: Frame, gpu: int = 0) -> tuple[InstanceFrame, ...]:
    return frame.devices[gpu].instances


def shape(frame: Frame, gpu: int = 0) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(each.id, each.profile, each.placement_start, each.placement_size) for each in instances(frame, gpu)]


def test_profile_and_placement_of_each_instance(stage: Stage) -> None:
    stage.say("gpus 2", "mig 0 3 40448", "mig 0 1 9856", "mig 0 1 9856")
    frame = stage.cycle()
    assert shape(frame) == [("1", "3g.40gb", 4, 4), ("2", "1g.10gb", 3, 1), ("3", "1g.10gb", 2, 1)]
    assert instances(frame, 1) == ()
    assert value(frame.devices[0], "gpuwatch_gpu_mig_enabled") == 1
    assert value(frame.devices[1], "gpuwatch_gpu_mig_enabled") == 0
    assert [value(each, "gpuwatch_gpu_mig_instances") for each in frame.devices] == [3, None]
    assert value(instances(frame)[0], "gpuwatch_gpu_mig_instance_compute_slices") == 3


def test_compute_instances_that_share_a_gpu_instance_are_told_apart(stage: Stage) -> None:
    stage.say("gpus 1", "mig 0 3 40448 2 0 1", "mig 0 3 40448 2 1 2", "mig 0 1 9856 9 0 1")
    frame = stage.cycle()
    assert [(each.id, each.profile) for each in instances(frame)] == [
        ("2/0", "1c.3g.40gb"), ("2/1", "2c.3g.40gb"), ("9", "1g.10gb"),
    ]  # fmt: skip
    assert len({each.uuid for each in instances(frame)}) == 3
    assert [value(each, "gpuwatch_gpu_mig_instance_compute_slices") for each in instances(frame)] == [1, 2, 1]


def test_what_only_the_board_has_is_not_repeated_on_its_instances(stage: Stage) -> None:
    stage.say("gpus 1", *["mig 0 1 9856"] * 7)
    frame = stage.cycle()
    for each in instances(frame):
        names = {value.family.name for value in each.values}
        assert names
        assert not {name for name in names if "power" in name or "temperature" in name or "energy" in name}
    assert value(frame.devices[0], "gpuwatch_gpu_utilization_ratio") is None  # unknown, not idle


def test_a_new_layout_is_seen_in_the_next_cycle(stage: Stage) -> None:
    stage.say("gpus 1", *["mig 0 1 9856"] * 7)
    assert len(instances(stage.cycle())) == 7
    stage.say("gpus 1", "mig 0 7 81153")
    assert shape(stage.cycle()) == [("1", "7g.80gb", 0, 8)]
    stage.say("gpus 1", "0 util 33")
    frame = stage.cycle()
    assert instances(frame) == ()
    assert value(frame.devices[0], "gpuwatch_gpu_utilization_ratio") == 0.33  # asked again: MIG had ruled it out


def test_the_room_that_is_left(stage: Stage) -> None:
    stage.say("gpus 1", "mig 0 3 40448", "mig 0 1 9856")
    board = stage.cycle().devices[0]
    assert {profile[0]: value(board, FREE, *profile) for profile in labels(board, FREE)} == {
        "1g.10gb": 3, "1g.10gb+me": 1, "1g.20gb": 1, "2g.20gb": 1, "3g.40gb": 0, "4g.40gb": 0, "7g.80gb": 0,
    }  # fmt: skip
    assert value(board, "gpuwatch_gpu_mig_profile_limit", "1g.10gb") == 7


def test_without_the_right_to_see_placements_the_profile_is_known_all_the_same(stage: Stage) -> None:
    refused = "err 0 nvmlDeviceGetGpuInstanceById 4"
    stage.say("gpus 1", "mig 0 3 40448", refused)
    assert shape(stage.cycle()) == [("1", "3g.40gb", None, None)]  # by the device's name
    stage.say("gpus 1", "mig 0 4 40448", refused, "err 0 nvmlDeviceGetName 999")
    assert shape(stage.cycle()) == [("1", "4g.40gb", None, None)]  # by its size


def test_a_failing_look_at_the_layout_keeps_the_last_one(stage: Stage) -> None:
    stage.say("gpus 1", "mig 0 3 40448")
    before = shape(stage.cycle())
    stage.say("gpus 1", "mig 0 3 40448", "err 0 nvmlDeviceGetMigMode 999")
    assert shape(stage.cycle()) == before
    stage.say("gpus 1", "mig 0 3 40448", "err 0 nvmlDeviceGetMigDeviceHandleByIndex 999")
    assert shape(stage.cycle()) == before


def test_an_instance_that_vanishes_while_it_is_read_harms_nobody(stage: Stage) -> None:
    stage.say("gpus 2", "mig 0 3 40448", "mig 0 1 9856", "err 0 nvmlDeviceGetGpuInstanceId 2")
    frame = stage.cycle()
    assert only_down(frame) == {}
    assert instances(frame) == ()


def test_a_call_that_fails_on_instances_leaves_what_others_tell_of_them(stage: Stage) -> None:
    slices, memory = "gpuwatch_gpu_mig_instance_compute_slices", "gpuwatch_gpu_memory_total_bytes"
    layout = ("gpus 1", "mig 0 3g.40gb", "mig 0 1g.10gb")
    stage.say(*layout, "err 0 nvmlDeviceGetAttributes_v2 999")
    told = instances(stage.cycle())
    assert [each.profile for each in told] == ["3g.40gb", "1g.10gb"]
    assert all(value(each, memory) and value(each, slices) is None for each in told)
    stage.say(*layout, "err 0 nvmlDeviceGetMemoryInfo 999", "err 0 nvmlDeviceGetMemoryInfo_v2 999")
    stage.restart()
    told = instances(stage.cycle())
    assert [value(each, slices) for each in told] == [3, 1]
    assert all(value(each, memory) is None for each in told)
