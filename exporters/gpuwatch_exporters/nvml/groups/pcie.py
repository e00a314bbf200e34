"""The PCIe link: what it could be, what it is, its errors. Left out is the throughput call, which sleeps 20 ms."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import pcie as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Field, Row, fields, rows

_LINK = (
    Row(nv.nvmlDeviceGetCurrPcieLinkGeneration, (), of.GENERATION),
    Row(nv.nvmlDeviceGetCurrPcieLinkWidth, (), of.WIDTH),
    Row(nv.nvmlDeviceGetPcieReplayCounter, (), of.REPLAYS),
)
_LIMITS = (
    Row(nv.nvmlDeviceGetMaxPcieLinkGeneration, (), of.GENERATION_MAX),
    Row(nv.nvmlDeviceGetGpuMaxPcieLinkGeneration, (), of.GENERATION_GPU_MAX),
    Row(nv.nvmlDeviceGetMaxPcieLinkWidth, (), of.WIDTH_MAX),
)
_COUNTS = (
    Field(nv.NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, of.REPLAY_ROLLOVERS),
    Field(nv.NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER, of.RECOVERIES),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, of.TRANSMITTED),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, of.RECEIVED),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, of.ERRORS, ("correctable",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, of.ERRORS, ("non_fatal",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, of.ERRORS, ("fatal",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR, of.ERRORS, ("receiver",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_BAD_TLP, of.ERRORS, ("bad_tlp",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, of.ERRORS, ("bad_dllp",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, of.ERRORS, ("unsupported_request",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR, of.ERRORS, ("lcrc",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, of.ERRORS, ("lane",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_NAKS_SENT, of.NAKS, ("sent",)),
    Field(nv.NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, of.NAKS, ("received",)),
)


class Pcie(Group):
    help = "link to the host: generation, width, bytes, errors"

    def read(self, board: Board) -> Iterable[Value]:
        yield from rows(board, _LINK)
        yield from fields(board, _COUNTS, "pcie")


class PcieLimits(Group):
    help = "what the link to the host could be"
    cadence = "static"

    def read(self, board: Board) -> Iterable[Value]:
        return rows(board, _LIMITS)


GROUPS.register("pcie")(Pcie())
GROUPS.register("pcie_limits")(PcieLimits())
