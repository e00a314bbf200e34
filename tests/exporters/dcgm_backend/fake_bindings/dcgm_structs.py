"""Stands in for NVIDIA's module of this name: error codes, and the structures that the exporter touches."""

from __future__ import annotations

import ctypes
from typing import Any

DCGM_ST_OK = 0
DCGM_ST_BADPARAM = -1
DCGM_ST_GENERIC_ERROR = -3
DCGM_ST_NOT_SUPPORTED = -6
DCGM_ST_INIT_ERROR = -7
DCGM_ST_UNINITIALIZED = -10
DCGM_ST_TIMEOUT = -11
DCGM_ST_NO_DATA = -14
DCGM_ST_NOT_WATCHED = -16
DCGM_ST_NO_PERMISSION = -17
DCGM_ST_GPU_IS_LOST = -18
DCGM_ST_CONNECTION_NOT_VALID = -21
DCGM_ST_GROUP_INCOMPATIBLE = -23
DCGM_ST_MAX_LIMIT = -24
DCGM_ST_LIBRARY_NOT_FOUND = -25
DCGM_ST_DUPLICATE_KEY = -26
DCGM_ST_MODULE_NOT_LOADED = -33
DCGM_ST_PROFILING_NOT_SUPPORTED = -36

DCGM_OPERATION_MODE_AUTO = 1
library_folder: str | None = None  # what _dcgmInit was given last
library_missing = False


class DCGMError(Exception):
    """value: one of DCGM_ST_*."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return f"error {self.value}"


def _dcgmInit(libDcgmPath: str | None = None) -> None:  # noqa: N802, N803
    global library_folder
    library_folder = libDcgmPath
    if library_missing:
        raise DCGMError(DCGM_ST_LIBRARY_NOT_FOUND)


class _Texts:
    """Bytes of structures come out as texts, as they do in the real module."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return value.decode() if isinstance(value, bytes) else value


class c_dcgmConnectV2Params_v2(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("version", ctypes.c_uint),
        ("persistAfterDisconnect", ctypes.c_uint),
        ("timeoutMs", ctypes.c_uint),
        ("addressIsUnixSocket", ctypes.c_uint),
    )


class c_dcgmGroupEntityPair_t(ctypes.Structure):  # noqa: N801
    _fields_ = (("entityGroupId", ctypes.c_uint32), ("entityId", ctypes.c_uint32))


class c_dcgmMigEntityInfo_t(_Texts, ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("gpuUuid", ctypes.c_char * 128),
        ("nvmlGpuIndex", ctypes.c_uint),
        ("nvmlInstanceId", ctypes.c_uint),
        ("nvmlComputeInstanceId", ctypes.c_uint),
        ("nvmlMigProfileId", ctypes.c_uint),
        ("nvmlProfileSlices", ctypes.c_uint),
    )


class c_dcgmMigHierarchyInfo_v2(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("entity", c_dcgmGroupEntityPair_t),
        ("parent", c_dcgmGroupEntityPair_t),
        ("info", c_dcgmMigEntityInfo_t),
    )


class c_dcgmMigHierarchy_v2(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("entityList", c_dcgmMigHierarchyInfo_v2 * 448),
    )


class c_dcgmDiagErrorDetail_t(_Texts, ctypes.Structure):  # noqa: N801
    _fields_ = (("msg", ctypes.c_char * 1024), ("code", ctypes.c_uint))


class c_dcgmIncidentInfo_t(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("system", ctypes.c_uint),
        ("health", ctypes.c_uint),
        ("error", c_dcgmDiagErrorDetail_t),
        ("entityInfo", c_dcgmGroupEntityPair_t),
    )


class c_dcgmHealthResponse_v5(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("version", ctypes.c_uint),
        ("overallHealth", ctypes.c_uint),
        ("incidentCount", ctypes.c_uint),
        ("incidents", c_dcgmIncidentInfo_t * 64),
    )


class c_dcgmDeviceIdentifiers_v1(_Texts, ctypes.Structure):  # noqa: N801
    _fields_ = tuple(
        (name, ctypes.c_char * 256) for name in ("deviceName", "pciBusId", "serial", "uuid", "driverVersion")
    )


class c_dcgmDeviceAttributes_v3(ctypes.Structure):  # noqa: N801
    _fields_ = (("version", ctypes.c_uint), ("identifiers", c_dcgmDeviceIdentifiers_v1))


class _Value(_Texts, ctypes.Union):
    _fields_ = (("i64", ctypes.c_int64), ("dbl", ctypes.c_double), ("str", ctypes.c_char * 256))


class c_dcgmFieldValue_v1(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("version", ctypes.c_uint),
        ("fieldId", ctypes.c_ushort),
        ("fieldType", ctypes.c_ushort),
        ("status", ctypes.c_int),
        ("ts", ctypes.c_int64),
        ("value", _Value),
    )


class c_dcgmFieldValue_v2(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("version", ctypes.c_uint),
        ("entityGroupId", ctypes.c_uint),
        ("entityId", ctypes.c_uint),
        ("fieldId", ctypes.c_ushort),
        ("fieldType", ctypes.c_ushort),
        ("status", ctypes.c_int),
        ("unused", ctypes.c_uint),
        ("ts", ctypes.c_int64),
        ("value", _Value),
    )
