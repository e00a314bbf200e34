"""Counts of memory errors: sums in each cycle, by place about once a minute."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import ecc as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Row, known, rows

_SEVERITIES = (
    (nv.NVML_MEMORY_ERROR_TYPE_CORRECTED, "corrected"),
    (nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, "uncorrected"),
)
_WINDOWS = ((nv.NVML_VOLATILE_ECC, "volatile"), (nv.NVML_AGGREGATE_ECC, "aggregate"))
_LOCATIONS = (
    (nv.NVML_MEMORY_LOCATION_L1_CACHE, "l1_cache"),
    (nv.NVML_MEMORY_LOCATION_L2_CACHE, "l2_cache"),
    (nv.NVML_MEMORY_LOCATION_DEVICE_MEMORY, "device_memory"),
    (nv.NVML_MEMORY_LOCATION_REGISTER_FILE, "register_file"),
    (nv.NVML_MEMORY_LOCATION_TEXTURE_MEMORY, "texture_memory"),
    (nv.NVML_MEMORY_LOCATION_TEXTURE_SHM, "texture_shared"),
    (nv.NVML_MEMORY_LOCATION_CBU, "cbu"),
    (nv.NVML_MEMORY_LOCATION_SRAM, "sram"),
)
_TOTALS = tuple(
    Row(nv.nvmlDeviceGetTotalEccErrors, (severity, window), of.ERRORS, (name, span))
    for severity, name in _SEVERITIES
    for window, span in _WINDOWS
)
_BY_LOCATION = tuple(
    Row(nv.nvmlDeviceGetMemoryErrorCounter, (severity, window, place), of.LOCATION_ERRORS, (name, span, where))
    for severity, name in _SEVERITIES
    for window, span in _WINDOWS
    for place, where in _LOCATIONS
)
_SRAM = (
    ("volatileCor", of.SRAM_ERRORS, ("corrected", "volatile")),
    ("volatileUncParity", of.SRAM_ERRORS, ("uncorrected_parity", "volatile")),
    ("volatileUncSecDed", of.SRAM_ERRORS, ("uncorrected_secded", "volatile")),
    ("aggregateCor", of.SRAM_ERRORS, ("corrected", "aggregate")),
    ("aggregateUncParity", of.SRAM_ERRORS, ("uncorrected_parity", "aggregate")),
    ("aggregateUncSecDed", of.SRAM_ERRORS, ("uncorrected_secded", "aggregate")),
    ("aggregateUncBucketL2", of.SRAM_UNIT_ERRORS, ("l2_cache",)),
    ("aggregateUncBucketSm", of.SRAM_UNIT_ERRORS, ("sm",)),
    ("aggregateUncBucketPcie", of.SRAM_UNIT_ERRORS, ("pcie",)),
    ("aggregateUncBucketMcu", of.SRAM_UNIT_ERRORS, ("microcontroller",)),
    ("aggregateUncBucketOther", of.SRAM_UNIT_ERRORS, ("other",)),
    ("bThresholdExceeded", of.SRAM_THRESHOLD, ()),
)


class Ecc(Group):
    help = "sums of corrected and uncorrected memory errors"

    def read(self, board: Board) -> Iterable[Value]:
        modes = board.ask(nv.nvmlDeviceGetEccMode)
        for family, told in zip((of.ENABLED, of.PENDING), modes or (), strict=False):
            yield Value(family, (), told)
        yield from rows(board, _TOTALS)


class EccSram(Group):
    help = "errors of on-chip memory, and whether they are too many"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        status = nv.c_nvmlEccSramErrorStatus_v1_t()
        function = nv.nvmlDeviceGetSramEccErrorStatus
        if board.calls.ask(function, board.handle, ctypes.byref(status), key=function) is None:
            return
        for name, family, labels in _SRAM:
            told = known(board, function.__name__, getattr(status, name))
            if told is not None:
                yield Value(family, labels, told)


class EccLocations(Group):
    help = "memory errors by the memory in which they were"
    cadence = "slow"
    detail = True

    def read(self, board: Board) -> Iterable[Value]:
        return rows(board, _BY_LOCATION)


GROUPS.register("ecc")(Ecc())
GROUPS.register("ecc_sram")(EccSram())
GROUPS.register("ecc_locations")(EccLocations())
