"""XIDs in the page of the whole exporter: of devices that answer, that are lost, that were lost before it started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuwatch_exporters.device.frame import DeviceFrame, Frame
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.settings import Settings

from tests.conftest import need_program
from tests.exporters.node.trees import Tree
from tests.exporters.nvml.collector.stage import slot
from tests.fake_nvml.harness import FakeNvml

TWO = "gpus 2"


class Node:
    """A node with two GPUs and a kernel log; `start` is a process on it, which ends the one before."""

    def __init__(self, folder: Path, fake: FakeNvml) -> None:
        self.tree, self.fake, self.log = Tree(folder), fake, folder / "kmsg"
        self.log.write_text("")
        self._folder = folder
        self._exporter: NvmlExporter | None = None
        for number in range(2):
            self.tree.device(slot(number))
        fake.write(TWO)

    def start(self, **settings: Any) -> NvmlExporter:
        self.close()
        chosen = Settings(
            "node-a", interval=2.0, sysfs=self.tree.sys, procfs=self.tree.proc, kernel_log=self.log,
            state_file=self._folder / "gpus.json", **settings,
        )  # fmt: skip
        self._exporter = NvmlExporter(chosen, HolderSettings(sources=()))
        return self._exporter

    def close(self) -> None:
        if self._exporter is not None:
            self._exporter.close()

    def until(self, exporter: NvmlExporter, good: Callable[[Frame], object], seconds: float = 10) -> Frame:
        """Cycles until the frame is as wished."""
        end = time.monotonic() + seconds
        while not good(frame := exporter.frame()):
            assert time.monotonic() < end, [(each.identity.index, each.up, xids(each)) for each in frame.devices]
            time.sleep(0.02)
        return frame

    def logs(self, code: int, address: str) -> None:
        with self.log.open("a") as log:
            log.write(f"4,1,{int(time.monotonic() * 1e6)},-;NVRM: Xid (PCI:{address[:-2]}): {code}, pid=1, name=x\n")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    need_program("gcc")
    fake = FakeNvml(tmp_path / "fake", gpus=2)
    fake.load()
    node = Node(tmp_path, fake)
    try:
        yield node
    finally:
        node.close()
        fake.unload()


def xids(device: DeviceFrame) -> dict[str, float]:
    return {v.labels[0]: v.number for v in device.values if v.family.name == "gpuwatch_gpu_xid_errors_total"}


def features(frame: Frame) -> set[tuple[str, ...]]:
    return {v.labels for v in frame.values if v.family.name == "gpuwatch_exporter_features"}


def watched(frame: Frame) -> bool:
    return {("xid_events", "on", ""), ("kernel_log", "on", "")} <= features(frame)


def test_events_of_a_gpu_that_answers(node: Node) -> None:
    exporter = node.start()
    node.until(exporter, watched)
    node.fake.write(TWO, "xid 0 31 1", "xid 0 31 2", "xid 1 94 3")
    frame = node.until(exporter, lambda frame: all(xids(each) for each in frame.devices))
    frame = node.until(exporter, lambda frame: xids(frame.devices[0]) == {"31": 2})
    assert xids(frame.devices[1]) == {"94": 1}
    assert 'gpuwatch_gpu_xid_errors_total{node="node-a",gpu="0"' in exporter.cycle()


def test_a_storm_of_events_is_counted_whole_and_holds_up_no_cycle(node: Node) -> None:
    exporter = node.start()
    node.until(exporter, watched)
    node.fake.write(TWO, *(f"xid {number % 2} {13 + number % 3} {number}" for number in range(1, 601)))
    slowest, end = 0.0, time.monotonic() + 20
    while True:
        began = time.monotonic()
        frame = exporter.frame()
        slowest = max(slowest, time.monotonic() - began)
        counts = [xids(each) for each in frame.devices]
        if counts == [{"13": 100, "14": 100, "15": 100}] * 2:
            break
        assert time.monotonic() < end, counts
    assert slowest < 1


def test_a_line_of_a_gpu_that_is_lost(node: Node) -> None:
    exporter = node.start()
    node.until(exporter, watched)
    node.fake.write(TWO, "err 1 * 15")
    node.logs(79, slot(1))
    frame = node.until(exporter, lambda frame: not frame.devices[1].up and xids(frame.devices[1]))
    assert xids(frame.devices[1]) == {"79": 1}
    assert xids(frame.devices[0]) == {}


def test_a_line_of_a_gpu_that_was_lost_before_the_start(node: Node) -> None:
    node.until(node.start(), lambda frame: len(frame.devices) == 2 and all(each.up for each in frame.devices))
    node.logs(79, slot(1))
    node.tree.unplug(slot(1))
    node.fake.write("gpus 1")
    frame = node.until(node.start(), lambda frame: any(xids(each) for each in frame.devices))
    [lost] = [each for each in frame.devices if not each.up]
    assert (lost.identity.index, lost.identity.pci_bus_id) == (1, slot(1))
    assert xids(lost) == {"79": 1}


def test_released_and_resumed(node: Node) -> None:
    exporter = node.start()
    node.until(exporter, watched)
    exporter.actions()["release"]()
    frame = exporter.frame()
    assert ("xid_events", "off", "stopped") in features(frame)
    node.logs(79, slot(0))
    node.until(exporter, lambda frame: xids(frame.devices[0]) == {"79": 1})
    exporter.actions()["resume"]()
    node.until(exporter, watched)
    node.fake.write(TWO, "xid 0 31 1")
    node.until(exporter, lambda frame: xids(frame.devices[0]) == {"31": 1, "79": 1})


def test_a_log_that_may_not_be_read_leaves_the_events(node: Node) -> None:
    node.log.unlink()
    exporter = node.start()
    frame = node.until(exporter, lambda frame: ("xid_events", "on", "") in features(frame))
    assert ("kernel_log", "off", "not_found") in features(frame)
    node.fake.write(TWO, "xid 1 62 1")
    node.until(exporter, lambda frame: xids(frame.devices[1]) == {"62": 1})


def test_a_driver_that_is_loaded_anew_is_listened_to(node: Node) -> None:
    exporter = node.start()
    node.until(exporter, watched)
    node.fake.write(TWO, "driver_gone 1")
    node.until(exporter, lambda frame: not any(each.up for each in frame.devices))
    node.fake.write(TWO)
    node.until(exporter, lambda frame: all(each.up for each in frame.devices) and watched(frame))
    node.fake.write(TWO, "xid 1 45 1")
    node.until(exporter, lambda frame: xids(frame.devices[1]) == {"45": 1})
