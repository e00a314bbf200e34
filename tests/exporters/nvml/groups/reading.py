"""One board of the stand-in library, and what groups read of it."""

from __future__ import annotations

from typing import Any

import pynvml as nv
from gpuwatch_exporters.device.frame import Identity, Value
from gpuwatch_exporters.nvml.calls import Calls
from gpuwatch_exporters.nvml.group import GROUPS, Board

Told = dict[tuple[str, ...], float]


def board(
    index: int = 0, model: str = "NVIDIA H100 80GB HBM3", mig_enabled: bool = False, driver: str = "580.95.05"
) -> Board:
    """A fresh view of the device: nothing is known to be unsupported."""
    handle = nv.nvmlDeviceGetHandleByIndex(index)
    who = Identity(index=index, uuid=f"GPU-{index}", model=model, driver_version=driver)
    return Board(handle=handle, identity=who, calls=Calls(f"GPU {index}"), mig_enabled=mig_enabled)


def read(group: str, of: Board | None = None) -> Told:
    """(family without gpuwatch_gpu_, its labels ...) -> number, of the board in a new cycle."""
    device = of or board()
    device.cycle += 1
    return told(GROUPS.get(group).read(device))


def told(values: Any) -> Told:
    """The same of any values; one series told twice is a fault."""
    found: Told = {}
    for family, labels, number in list[Value](values):
        key = (family.name.removeprefix("gpuwatch_gpu_"), *labels)
        assert key not in found, key
        found[key] = number
    return found
