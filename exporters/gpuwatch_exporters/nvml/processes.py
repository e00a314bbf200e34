"""The processes that the driver lists on a device, those that are really there, and their memory.

Process ids come from the driver, which may list ended processes, or ids of another pid namespace: only those that
the process file system shows are believed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml as nv

from gpuwatch_exporters.nvml.group import Board, Instance

# Clients of MPS stand in two lists on some drivers: the kind that is told first is kept.
LISTS: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("mps", nv.nvmlDeviceGetMPSComputeRunningProcesses_v3, nv.nvmlDeviceGetMPSComputeRunningProcesses_v2),
    ("compute", nv.nvmlDeviceGetComputeRunningProcesses_v3, nv.nvmlDeviceGetComputeRunningProcesses_v2),
    ("graphics", nv.nvmlDeviceGetGraphicsRunningProcesses_v3, nv.nvmlDeviceGetGraphicsRunningProcesses_v2),
)
_NO_PID = (0, 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Listed:
    """counts: processes by kind, for the lists that could be read. memory: pid -> bytes, None where it is not told.
    kinds: pid -> kind. stale: ids that are not there; None when a list failed now, or none could be read."""

    counts: dict[str, int]
    memory: dict[int, int | None]
    kinds: dict[int, str]
    stale: int | None
    whole: bool  # no list failed now; one that this driver does not have is no failure


def listed(device: Board | Instance, procfs: Path) -> Listed:
    """What the driver lists on a GPU or MIG instance. DeviceLostError, DriverGoneError."""
    counts: dict[str, int] = {}
    memory: dict[int, int | None] = {}
    kinds: dict[int, str] = {}
    alive: dict[int, bool] = {}
    whole = True
    for kind, newer, older in LISTS:
        asked, told = newer, device.ask(newer)
        if told is None and device.calls.unsupported.get((newer, ())) == "driver_too_old":
            asked, told = older, device.ask(older)
        if told is None:
            whole = whole and (asked, ()) in device.calls.unsupported
            continue
        here = {each.pid: each.usedGpuMemory for each in told if each.pid not in _NO_PID}
        for pid in here:
            if pid not in alive:
                alive[pid] = os.path.exists(procfs / str(pid))
        counts[kind] = sum(alive[pid] for pid in here)
        for pid, amount in here.items():
            if alive[pid]:
                kinds.setdefault(pid, kind)
                memory[pid] = _larger(memory.get(pid), amount)
    stale = sum(not each for each in alive.values()) if counts and whole else None
    return Listed(counts, memory, kinds, stale, whole)


def name_of(pid: int, procfs: Path) -> str:
    """The program's short name; "" when the process is gone."""
    try:
        return (procfs / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _larger(one: int | None, other: int | None) -> int | None:
    """Two lists tell of the same memory: it is not added up."""
    told = [each for each in (one, other) if each is not None]
    return max(told) if told else None
