"""Why clocks are down: every bit that the driver has, named or not, and the time of each where the driver counts it."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import clocks as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Number, fields, number
from gpuwatch_exporters.nvml.renumbered import THROTTLE_TIMES, for_driver

REASONS = {
    nv.nvmlClocksEventReasonGpuIdle: "gpu_idle",
    nv.nvmlClocksEventReasonApplicationsClocksSetting: "application_clocks",
    nv.nvmlClocksEventReasonSwPowerCap: "sw_power_cap",
    nv.nvmlClocksEventReasonHwSlowdown: "hw_slowdown",
    nv.nvmlClocksEventReasonSyncBoost: "sync_boost",
    nv.nvmlClocksEventReasonSwThermalSlowdown: "sw_thermal_slowdown",
    nv.nvmlClocksEventReasonHwThermalSlowdown: "hw_thermal_slowdown",
    nv.nvmlClocksEventReasonHwPowerBrakeSlowdown: "hw_power_brake",
    nv.nvmlClocksEventReasonDisplayClockSetting: "display_clocks",
    nv.nvmlClocksThrottleReasonBoardLimit: "board_limit",
    nv.nvmlClocksThrottleReasonReliability: "reliability",
}
_NANO = 1e-9
_TIMES = tuple(
    Field(id_, of.THROTTLE_SECONDS, (reason,), _NANO)
    for id_, reason in (
        (nv.NVML_FI_DEV_PERF_POLICY_POWER, "sw_power_cap"),
        (nv.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "sync_boost"),
        (THROTTLE_TIMES[0], "sw_thermal_slowdown"),
        (THROTTLE_TIMES[1], "hw_thermal_slowdown"),
        (THROTTLE_TIMES[2], "hw_power_brake"),
        (nv.NVML_FI_DEV_PERF_POLICY_THERMAL, "thermal"),
        (nv.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, "board_limit"),
        (nv.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, "low_utilization"),
        (nv.NVML_FI_DEV_PERF_POLICY_RELIABILITY, "reliability"),
        (nv.NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, "application_clocks"),
        (nv.NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, "base_clocks"),
    )
)


class Throttle(Group):
    help = "what keeps clocks down, now and as time"

    def read(self, board: Board) -> Iterable[Value]:
        active = _either(board, nv.nvmlDeviceGetCurrentClocksEventReasons, nv.nvmlDeviceGetCurrentClocksThrottleReasons)
        if active is not None:
            yield from _bits(int(active), self._possible(board))
        yield from fields(board, for_driver(_TIMES, board.identity.driver_version), "throttle")

    def _possible(self, board: Board) -> int:
        if "throttle" not in board.kept:
            told = _either(
                board, nv.nvmlDeviceGetSupportedClocksEventReasons, nv.nvmlDeviceGetSupportedClocksThrottleReasons
            )
            board.kept["throttle"] = int(told or 0)
        return int(board.kept["throttle"])


def _either(board: Board, new: object, old: object) -> Number | None:
    told = number(board, new)  # type: ignore[arg-type]
    return number(board, old) if told is None else told  # type: ignore[arg-type]


def _bits(active: int, possible: int) -> Iterable[Value]:
    """0 or 1 for each reason that the board can have, and for any other that is active."""
    mask = active | possible
    for place in range(mask.bit_length()):
        bit = 1 << place
        if mask & bit:
            yield Value(of.THROTTLE_ACTIVE, (REASONS.get(bit, f"bit_{place}"),), 1 if active & bit else 0)


GROUPS.register("throttle")(Throttle())
