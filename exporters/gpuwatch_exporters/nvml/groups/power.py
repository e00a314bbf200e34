"""Power and its limits, of the board alone: an instance has no power of its own."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import power as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Row, fields, known, rows, scaled

_MILLI = 1e-3
_TABLE = (
    Row(nv.nvmlDeviceGetPowerUsage, (), of.POWER, factor=_MILLI),
    Row(nv.nvmlDeviceGetEnforcedPowerLimit, (), of.LIMIT, factor=_MILLI),
    Row(nv.nvmlDeviceGetPowerManagementLimit, (), of.MANAGEMENT_LIMIT, factor=_MILLI),
)
_PARTS = (
    (nv.NVML_POWER_SCOPE_GPU, "gpu"),
    (nv.NVML_POWER_SCOPE_MODULE, "module"),
    (nv.NVML_POWER_SCOPE_MEMORY, "memory"),
)
_FIELDS = (
    *(Field(nv.NVML_FI_DEV_POWER_AVERAGE, of.AVERAGE, (name,), _MILLI, scope) for scope, name in _PARTS),
    *(Field(nv.NVML_FI_DEV_POWER_INSTANT, of.INSTANT, (name,), _MILLI, scope) for scope, name in _PARTS),
    Field(nv.NVML_FI_DEV_POWER_REQUESTED_LIMIT, of.REQUESTED_LIMIT, factor=_MILLI),
    Field(nv.NVML_FI_DEV_EDPP_MULTIPLIER, of.EDPP, factor=0.01),
)
_SMOOTHING = (
    Field(nv.NVML_FI_PWR_SMOOTHING_ENABLED, of.SMOOTHING),
    Field(nv.NVML_FI_PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING, of.SMOOTHING_LIFE, factor=0.01),
    Field(nv.NVML_FI_PWR_SMOOTHING_APPLIED_TMP_CEIL, of.SMOOTHING_CEILING, factor=_MILLI),
    Field(nv.NVML_FI_PWR_SMOOTHING_APPLIED_TMP_FLOOR, of.SMOOTHING_FLOOR, factor=_MILLI),
    Field(nv.NVML_FI_PWR_SMOOTHING_ACTIVE_PRESET_PROFILE, of.SMOOTHING_PROFILE),
)


class Power(Group):
    help = "power of the board and its parts, limits in force"

    def read(self, board: Board) -> Iterable[Value]:
        yield from rows(board, _TABLE)
        yield from fields(board, _FIELDS, "power")


class PowerLimits(Group):
    help = "power limits that can be set"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        default = Row(nv.nvmlDeviceGetPowerManagementDefaultLimit, (), of.DEFAULT_LIMIT, factor=_MILLI)
        yield from rows(board, (default,))
        bounds = board.ask(nv.nvmlDeviceGetPowerManagementLimitConstraints)
        for family, told in zip((of.MIN_LIMIT, of.MAX_LIMIT), bounds or (), strict=False):
            if known(board, "nvmlDeviceGetPowerManagementLimitConstraints", told) is not None:
                yield Value(family, (), scaled(told, _MILLI))


class PowerSmoothing(Group):
    help = "smoothing of power changes (Blackwell)"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        return fields(board, _SMOOTHING, "power_smoothing")


class Energy(Group):
    help = "energy since the driver was loaded"

    def read(self, board: Board) -> Iterable[Value]:
        found = list(rows(board, (Row(nv.nvmlDeviceGetTotalEnergyConsumption, (), of.ENERGY, factor=_MILLI),)))
        return found or fields(
            board, (Field(nv.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, of.ENERGY, (), _MILLI),), "energy"
        )


GROUPS.register("power")(Power())
GROUPS.register("power_limits")(PowerLimits())
GROUPS.register("power_smoothing")(PowerSmoothing())
GROUPS.register("energy")(Energy())
