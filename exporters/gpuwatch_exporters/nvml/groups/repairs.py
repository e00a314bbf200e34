"""What the board did about bad memory: rows and banks remapped, pages retired, repairs that wait for a reset."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import ecc as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Row, fields, known, rows

_ROWS = (
    (of.REMAPPED_ROWS, ("correctable",)),
    (of.REMAPPED_ROWS, ("uncorrectable",)),
    (of.REMAP_PENDING, ()),
    (of.REMAP_FAILED, ()),
)
_SPARES = ("max", "high", "partial", "low", "none")
# Newer than many drivers: each in its own call's answer, in a batch of their own.
_BANKS = (
    Field(nv.NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE, of.INACTIVE_ROWS, ("correctable",)),
    Field(nv.NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE, of.INACTIVE_ROWS, ("uncorrectable",)),
    Field(nv.NVML_FI_DEV_ACTIVE_BANK_REMAPPINGS, of.REMAPPED_BANKS, ("active",)),
    Field(nv.NVML_FI_DEV_INACTIVE_BANK_REMAPPINGS, of.REMAPPED_BANKS, ("inactive",)),
    Field(nv.NVML_FI_DEV_BANK_REMAPPER_HISTOGRAM_MAX, of.BANK_REMAP_GROUPS, ("max",)),
    Field(nv.NVML_FI_DEV_BANK_REMAPPER_HISTOGRAM_NONE, of.BANK_REMAP_GROUPS, ("none",)),
    Field(nv.NVML_FI_DEV_PENDING_BANK_REMAPPING, of.BANK_REMAP_PENDING),
)
# Counts alone: the list of the pages is slow to get.
_PAGES = (
    Field(nv.NVML_FI_DEV_RETIRED_SBE, of.RETIRED_PAGES, ("single_bit",)),
    Field(nv.NVML_FI_DEV_RETIRED_DBE, of.RETIRED_PAGES, ("double_bit",)),
    Field(nv.NVML_FI_DEV_RETIRED_PENDING, of.RETIREMENT_PENDING),
)
_UNREPAIRABLE = Row(getattr(nv, "nvmlDeviceGetUnrepairableMemoryFlag_v1", None), (), of.UNREPAIRABLE)


class RemappedRows(Group):
    help = "rows of memory that were remapped, could not be, or wait for a reset"

    def read(self, board: Board) -> Iterable[Value]:
        told = board.ask(nv.nvmlDeviceGetRemappedRows)
        for (family, labels), amount in zip(_ROWS, told or (), strict=False):
            if known(board, "nvmlDeviceGetRemappedRows", amount) is not None:
                yield Value(family, labels, amount)


class Repairs(Group):
    help = "spare rows and banks that are left, retired pages, repairs that wait"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        spares = board.ask(nv.nvmlDeviceGetRowRemapperHistogram)
        if spares is not None:
            for name in _SPARES:
                yield Value(of.REMAP_BANKS, (name,), getattr(spares, name))
        yield from fields(board, _BANKS, "banks")
        yield from fields(board, _PAGES, "pages")
        if hasattr(nv, "nvmlDeviceGetRepairStatus"):
            pending = board.ask(nv.nvmlDeviceGetRepairStatus)
            for family, waits in zip((of.CHANNEL_REPAIR, of.TPC_REPAIR), pending or (), strict=False):
                yield Value(family, (), 1 if waits else 0)
        yield from rows(board, (_UNREPAIRABLE,))


GROUPS.register("remapped_rows")(RemappedRows())
GROUPS.register("repairs")(Repairs())
