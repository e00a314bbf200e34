from __future__ import annotations

from pathlib import Path

from gpuwatch_exporters.node.driver_list import DriverList, Listed

from tests.exporters.node.trees import Tree

SLOT = "0000:18:00.0"


def test_the_page_of_a_gpu_is_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.listed(SLOT, "GPU-1234", minor=3)
    drivers = DriverList(tree.proc)
    assert drivers.read() == {SLOT}
    assert drivers.identify(SLOT) == Listed("GPU-1234", "NVIDIA H100 80GB HBM3", 3)


def test_no_driver_is_unknown_not_none(tmp_path: Path) -> None:
    assert DriverList(tmp_path).read() is None
    assert DriverList(tmp_path).identify(SLOT) == Listed()


def test_a_uuid_of_question_marks_is_no_uuid_and_is_asked_again(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.listed(SLOT, "GPU-????????-????-????-????-????????????")
    drivers = DriverList(tree.proc)
    drivers.read()
    assert drivers.identify(SLOT).uuid == ""
    tree.listed(SLOT, "GPU-1234")
    assert drivers.identify(SLOT).uuid == "GPU-1234"


def test_a_page_is_read_once_until_the_device_is_listed_anew(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.device(SLOT)
    tree.listed(SLOT, "GPU-old")
    drivers = DriverList(tree.proc)
    drivers.read()
    drivers.identify(SLOT)
    tree.listed(SLOT, "GPU-new")
    assert drivers.identify(SLOT).uuid == "GPU-old"
    tree.unplug(SLOT)
    drivers.read()
    tree.listed(SLOT, "GPU-new")
    drivers.read()
    assert drivers.identify(SLOT).uuid == "GPU-new"
