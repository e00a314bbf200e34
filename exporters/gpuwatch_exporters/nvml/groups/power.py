"""Power and its limits, of the board alone: an instance has no power of its own."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import power as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Row, fields, known, rows, scaled
from gpuwatch_exporters.nvml.renumbered import SMOOTHING, for_driver

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
    Field(SMOOTHING[0], of.SMOOTHING),
    Field(SMOOTHING[3], of.SMOOTHING_CEILING),
    Field(SMOOTHING[4], of.SMOOTHING_FLOOR),
    Field(SMOOTHING[7], of.SMOOTHING_LIFE, factor=0.01),
    Field(SMOOTHING[13], of.SMOOTHING_PROFILE),
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
        return fields(board, for_driver(_SMOOTHING, board.identity.driver_version), "power_smoothing")


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
