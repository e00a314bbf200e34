"""The NVLink fabric behind NVSwitches: a GPU that has not joined it runs no job that spans several GPUs."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Iterable
from typing import Any

import pynvml as nv

from gpuwatch_exporters.device.families import fabric as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.calls import error_name
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group

_STATES = {
    nv.NVML_GPU_FABRIC_STATE_NOT_STARTED: "not_started",
    nv.NVML_GPU_FABRIC_STATE_IN_PROGRESS: "in_progress",
    nv.NVML_GPU_FABRIC_STATE_COMPLETED: "completed",
}
_SUMMARIES = {
    nv.NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY: "healthy",
    nv.NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY: "unhealthy",
    nv.NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY: "limited_capacity",
}
# (fault, shift of its two bits in the mask, the value that means the fault, the value that rules it out)
_FAULTS = (
    ("degraded_bandwidth", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, 1, 2),
    ("route_recovery", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, 1, 2),
    ("route_unhealthy", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, 1, 2),
    ("access_timeout_recovery", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, 1, 2),
    ("no_partition_assigned", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_PARTITION_ASSIGNED, 2, 1),
    ("manager_disconnected", nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_GFM_STATE, 2, 1),
)
_CONFIGURATION = "NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_"
_REASONS = {
    getattr(nv, name): name.removeprefix(_CONFIGURATION).removeprefix("INCORRECT_").lower()
    for name in dir(nv)
    if name.startswith(_CONFIGURATION)
}


class Fabric(Group):
    help = "whether the GPU has joined the NVLink fabric, and the fabric's health"

    def read(self, board: Board) -> Iterable[Value]:
        info = _ask(board)
        if info is not None and info.state == nv.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
            board.why = "no_fabric"
        if info is None or info.state not in _STATES:
            return
        joined = info.state == nv.NVML_GPU_FABRIC_STATE_COMPLETED and info.status == nv.NVML_SUCCESS
        yield Value(of.STATE, (), info.state)
        yield Value(of.JOINED, (), 1 if joined else 0)
        yield Value(of.INFO, _facts(info), 1)
        summary = _SUMMARIES.get(getattr(info, "healthSummary", 0))
        if summary is not None:
            yield Value(of.HEALTHY, (), 1 if summary == "healthy" else 0)
            yield Value(of.HEALTH_INFO, (summary,), 1)
        yield from faults(info.healthMask)


def _ask(board: Board) -> Any:
    """The newest form that the driver knows; None where there is no fabric."""
    for make in (nv.c_nvmlGpuFabricInfo_v3_t, nv.c_nvmlGpuFabricInfo_v2_t):
        info = make()
        key = ("fabric", info.version)
        if board.calls.ask(nv.nvmlDeviceGetGpuFabricInfoV, board.handle, ctypes.byref(info), key=key) is not None:
            return info
        if board.calls.unsupported.get(key) not in ("version_mismatch", "invalid_argument"):
            return None  # an older form would be refused as well
    return None


def _facts(info: Any) -> tuple[str, str, str, str]:
    """cluster_uuid, clique_id, state, status; the first two mean nothing before the GPU has joined."""
    state = _STATES[info.state]
    if info.state != nv.NVML_GPU_FABRIC_STATE_COMPLETED:
        return "", "", state, ""
    status = "success" if info.status == nv.NVML_SUCCESS else error_name(info.status)
    return str(uuid.UUID(bytes=bytes(info.clusterUuid))), str(info.cliqueId), state, status


def faults(mask: int) -> Iterable[Value]:
    """The faults in a health mask. A part of it that is 0 was not looked at."""
    for fault, shift, present, absent in _FAULTS:
        told = mask >> shift & 0x3
        if told in (present, absent):
            yield Value(of.FAULT, (fault,), 1 if told == present else 0)
    wrong = (
        mask >> nv.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION
        & nv.NVML_GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION
    )
    if wrong == nv.NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NOT_SUPPORTED:
        return
    none = wrong == nv.NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE
    yield Value(of.FAULT, ("incorrect_configuration",), 0 if none else 1)
    if not none:
        yield Value(of.CONFIGURATION_INFO, (_REASONS.get(wrong, f"reason_{wrong}"),), 1)


GROUPS.register("fabric")(Fabric())
