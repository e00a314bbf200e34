"""Clocks by domain; the library counts in MHz."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pynvml as nv

from gpuwatch_exporters.device.families import clocks as of
from gpuwatch_exporters.device.family import Family
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Row, rows

_MEGA = 1_000_000
_DOMAINS = (
    (nv.NVML_CLOCK_GRAPHICS, "graphics"),
    (nv.NVML_CLOCK_SM, "sm"),
    (nv.NVML_CLOCK_MEM, "memory"),
    (nv.NVML_CLOCK_VIDEO, "video"),
)


def _table(function: Callable[..., Any], family: Family, *more: int) -> tuple[Row, ...]:
    return tuple(Row(function, (domain, *more), family, (name,), _MEGA) for domain, name in _DOMAINS)


_NOW = _table(nv.nvmlDeviceGetClockInfo, of.CLOCK)
_SETTINGS = (
    *_table(nv.nvmlDeviceGetMaxClockInfo, of.MAX),
    *_table(nv.nvmlDeviceGetMaxCustomerBoostClock, of.BOOST_MAX),
    *_table(nv.nvmlDeviceGetClock, of.TARGET, nv.NVML_CLOCK_ID_APP_CLOCK_TARGET),
    *_table(nv.nvmlDeviceGetClock, of.DEFAULT, nv.NVML_CLOCK_ID_APP_CLOCK_DEFAULT),
)


class Clocks(Group):
    help = "clocks by domain"

    def read(self, board: Board) -> Iterable[Value]:
        return rows(board, _NOW)


class ClockSettings(Group):
    help = "highest clocks and application clocks"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        return rows(board, _SETTINGS)


GROUPS.register("clocks")(Clocks())
GROUPS.register("clock_settings")(ClockSettings())
