"""A node in one process: the C fake as the library, folders as /sys and /proc, and a collector between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml as nv
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, InstanceFrame
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.settings import Settings

from tests.exporters.node.trees import Tree


class Stage:
    """`say` writes the fake's state, `bus` makes the kernel's folders, `cycle` is one cycle of the collector."""

    def __init__(self, folder: Path, say: Callable[..., None]) -> None:
        self.tree = Tree(folder)
        self.say = say
        self._folder = folder
        self._collectors: list[Collector] = []
        self.collector = self.restart()

    def restart(self, **settings: Any) -> Collector:
        """Another process on the same node, as far as memory goes."""
        for each in self._collectors:
            each.close()
        chosen = {"interval": 2.0, "state_file": self._folder / "gpus.json", **settings}
        self.collector = Collector(Settings("node-a", sysfs=self.tree.sys, procfs=self.tree.proc, **chosen))
        self._collectors = [self.collector]
        return self.collector

    def close(self) -> None:
        """Ends the threads."""
        for each in self._collectors:
            each.close()

    def bus(self, gpus: int, **device: Any) -> list[str]:
        """So many GPUs on the bus and in the driver's list, at the fake's addresses, which are returned."""
        addresses = [slot(number) for number in range(gpus)]
        for address in addresses:
            self.tree.device(address, **device)
        return addresses

    def calls(self, gpu: int) -> int:
        """Calls that the library got for this device."""
        return int(nv.nvmlLib.fakeNvmlDeviceCalls(gpu))

    def cycle(self) -> Frame:
        """One cycle."""
        return self.collector.collect()

    def until(self, what: str, good: Callable[[Frame], object], seconds: float = 20) -> Frame:
        """Cycles until the frame is as wished."""
        end = time.monotonic() + seconds
        while True:
            frame = self.cycle()
            if good(frame):
                return frame
            assert time.monotonic() < end, f"{what}: not within {seconds} s; {told(frame)}"
            time.sleep(0.02)


def slot(number: int) -> str:
    """The address of a GPU of the fake, as the kernel spells it."""
    return f"0000:{0x18 + 0x10 * number:02x}:00.0"


def value(of: Frame | DeviceFrame | InstanceFrame, name: str, *labels: str) -> float | None:
    """The value of the family `name` with these labels; None where there is none."""
    found = [each.number for each in of.values if each.family.name == name and each.labels[: len(labels)] == labels]
    assert len(found) <= 1, f"{name}{labels}: {found}"
    return found[0] if found else None


def labels(of: Frame | DeviceFrame, name: str) -> list[tuple[str, ...]]:
    """The label sets of a family."""
    return [each.labels for each in of.values if each.family.name == name]


def told(frame: Frame) -> list[tuple[int | None, str | None]]:
    """(index, why it is down) of each device."""
    return [(each.identity.index, each.down_reason) for each in frame.devices]


def only_down(frame: Frame) -> dict[int | None, str | None]:
    """Why those that are down are."""
    return {index: reason for index, reason in told(frame) if reason is not None}
