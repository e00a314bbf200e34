"""How many GPUs should be here, where a bus and uuids alone do not tell."""

from __future__ import annotations

from tests.exporters.nvml.collector.stage import Stage, labels, only_down, slot, told, value

EXPECTED, VISIBLE = "gpuwatch_gpus_expected", "gpuwatch_gpus_visible"


def test_a_container_that_is_given_some_of_the_gpus_misses_none_of_the_others(stage: Stage) -> None:
    stage.bus(8)
    stage.say("gpus 2")
    frame = stage.cycle()
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (8, 2)
    stage.restart(whole_node=False)
    frame = stage.cycle()
    assert told(frame) == [(0, None), (1, None)]
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (2, 2)
    assert [value(frame, "gpuwatch_gpus_listed", source) for source in ("pci", "library")] == [8, 2]
    assert labels(frame, "gpuwatch_gpus_unidentified_info") == []
    assert not stage.collector._reopening.due(False)
    stage.say("gpus 1")
    stage.restart(whole_node=False)
    frame = stage.cycle()
    assert only_down(frame) == {1: "gone"}  # one that was given is missed
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (2, 1)


def test_the_number_of_gpus_can_be_told(stage: Stage) -> None:
    stage.bus(2)
    stage.say("gpus 2")
    stage.restart(expected_gpus=4)
    frame = stage.cycle()
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (4, 2)


def test_one_that_sleeps_from_the_start_is_not_missed_though_nobody_knows_its_uuid(stage: Stage) -> None:
    stage.bus(2)
    stage.tree.device(slot(1), status="suspended")
    stage.tree.listed(slot(1), "GPU-????????-????-????-????-????????????")
    stage.say("gpus 2")
    frame = stage.cycle()
    assert labels(frame, "gpuwatch_gpus_unidentified_info") == [(slot(1), "suspended")]
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (2, 2)


def test_a_gpu_whose_uuid_nobody_knows_counts_as_expected_without_a_made_up_name(stage: Stage) -> None:
    stage.bus(3)
    stage.say("gpus 3", "err 2 * 15")
    frame = stage.cycle()
    assert told(frame) == [(0, None), (1, None)]
    assert (value(frame, EXPECTED), value(frame, VISIBLE)) == (3, 2)
    assert labels(frame, "gpuwatch_gpus_unidentified_info") == [(slot(2), "lost")]
    assert f"the GPU at {slot(2)} is not read: lost" in frame.notes
