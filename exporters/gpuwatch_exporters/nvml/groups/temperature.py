"""Heat of the board: sensors each cycle, limits once, fans where there are any."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import temperature as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.fields import field_value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Row, fields, number, rows

_MARGIN = getattr(nv, "nvmlDeviceGetMarginTemperature", None)
_LIMITS = tuple(
    Row(nv.nvmlDeviceGetTemperatureThreshold, (kind,), of.LIMIT, (name,))
    for kind, name in (
        (nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, "shutdown"),
        (nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, "slowdown"),
        (nv.NVML_TEMPERATURE_THRESHOLD_MEM_MAX, "memory_max"),
        (nv.NVML_TEMPERATURE_THRESHOLD_GPU_MAX, "gpu_max"),
        (nv.NVML_TEMPERATURE_THRESHOLD_GPS_CURR, "target"),
    )
)
_LIMIT_MARGINS = (
    Field(nv.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, of.LIMIT_MARGIN, ("shutdown",)),
    Field(nv.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, of.LIMIT_MARGIN, ("slowdown",)),
    Field(nv.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, of.LIMIT_MARGIN, ("memory_max",)),
    Field(nv.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, of.LIMIT_MARGIN, ("gpu_max",)),
)


class Temperature(Group):
    help = "temperature of GPU and memory, margin to the slowdown"

    def read(self, board: Board) -> Iterable[Value]:
        heat = number(board, nv.nvmlDeviceGetTemperatureV, nv.NVML_TEMPERATURE_GPU)
        if heat is None:  # drivers before 570 know the older call alone
            heat = number(board, nv.nvmlDeviceGetTemperature, nv.NVML_TEMPERATURE_GPU)
        if heat is not None:
            yield Value(of.TEMPERATURE, (), heat)
        memory = field_value(board, nv.NVML_FI_DEV_MEMORY_TEMP, batch="temperature")
        if memory:  # 0 is what boards without this sensor tell
            yield Value(of.MEMORY, (), memory)
        yield from rows(board, (Row(_MARGIN, (), of.MARGIN),))


class TemperatureLimits(Group):
    help = "temperatures at which the GPU slows down or stops"
    cadence = "static"

    def read(self, board: Board) -> Iterable[Value]:
        for value in rows(board, _LIMITS):
            if value.number:  # 0: this limit is not set
                yield value
        yield from fields(board, _LIMIT_MARGINS, "temperature_limits")


class Fans(Group):
    help = "fans (none on SXM boards)"

    def read(self, board: Board) -> Iterable[Value]:
        count = number(board, nv.nvmlDeviceGetNumFans)
        fans = tuple(
            Row(nv.nvmlDeviceGetFanSpeed_v2, (fan,), of.FAN_SPEED, (str(fan),), 0.01) for fan in range(int(count or 0))
        )
        yield from rows(board, fans)
        if count == 0:
            board.why = "no_fans"
        if fans:
            yield from rows(board, (Row(getattr(nv, "nvmlDeviceGetFanSpeedRPM", None), (), of.FAN_RPM),))


GROUPS.register("temperature")(Temperature())
GROUPS.register("temperature_limits")(TemperatureLimits())
GROUPS.register("fans")(Fans())
