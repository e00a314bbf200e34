"""Activity of the chip's parts and its traffic, from its own counters, of the GPU and of each MIG instance.

No right is needed and no lock is taken, so that profilers go on working beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import pynvml as nv

from gpuwatch_exporters.device.families import gpm as of
from gpuwatch_exporters.device.family import Family
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.gpm import Sampler, new_request
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group, Instance
from gpuwatch_exporters.nvml.links import link_count

PERCENT, MIB_PER_SECOND, PLAIN = 1 / 100, float(1 << 20), 1.0


class Metric(NamedTuple):
    """Where a metric of the library goes, and what makes base units of it."""

    family: Family
    labels: tuple[str, ...]
    factor: float


def _numbered(prefix: str, suffix: str, most: int) -> Iterable[tuple[str, int]]:
    """(number, id) of the library's constants PREFIX<number>SUFFIX."""
    for number in range(most):
        id_ = getattr(nv, f"NVML_GPM_METRIC_{prefix}{number}{suffix}", None)
        if id_ is not None:
            yield str(number), id_


def _of_both() -> dict[int, Metric]:
    """Metrics of a GPU and of a MIG instance, by id."""
    plain = {
        nv.NVML_GPM_METRIC_GRAPHICS_UTIL: of.GRAPHICS_ACTIVE,
        nv.NVML_GPM_METRIC_SM_UTIL: of.SM_ACTIVE,
        nv.NVML_GPM_METRIC_SM_OCCUPANCY: of.SM_OCCUPANCY,
        nv.NVML_GPM_METRIC_INTEGER_UTIL: of.INTEGER_ACTIVE,
        nv.NVML_GPM_METRIC_ANY_TENSOR_UTIL: of.TENSOR_ACTIVE,
        nv.NVML_GPM_METRIC_DRAM_BW_UTIL: of.DRAM_ACTIVE,
        nv.NVML_GPM_METRIC_FP64_UTIL: of.FP64_ACTIVE,
        nv.NVML_GPM_METRIC_FP32_UTIL: of.FP32_ACTIVE,
        nv.NVML_GPM_METRIC_FP16_UTIL: of.FP16_ACTIVE,
    }
    out = {id_: Metric(family, (), PERCENT) for id_, family in plain.items()}
    for pipe in ("DFMA", "HMMA", "DMMA", "IMMA"):
        id_ = getattr(nv, f"NVML_GPM_METRIC_{pipe}_TENSOR_UTIL")
        out[id_] = Metric(of.TENSOR_PIPE_ACTIVE, (pipe.lower(),), PERCENT)
    for engine, prefix in (("decoder", "NVDEC_"), ("encoder", "NVENC_"), ("jpeg", "NVJPG_"), ("ofa", "NVOFA_")):
        for number, id_ in _numbered(prefix, "_UTIL", 8):
            out[id_] = Metric(of.ENGINE_ACTIVE, (engine, number), PERCENT)
    for number, id_ in _numbered("GR", "_CTXSW_ACTIVE_PCT", 8):
        out[id_] = Metric(of.CONTEXT_SWITCHING, (number,), PERCENT)
    for memory in ("HOSTMEM", "PEERMEM", "DRAM"):
        id_ = getattr(nv, f"NVML_GPM_METRIC_{memory}_CACHE_HIT")
        out[id_] = Metric(of.CACHE_HITS, (memory.removesuffix("MEM").lower(),), PERCENT)
    out[nv.NVML_GPM_METRIC_PCIE_TX_PER_SEC] = Metric(of.PCIE_TRANSMIT, (), MIB_PER_SECOND)
    out[nv.NVML_GPM_METRIC_PCIE_RX_PER_SEC] = Metric(of.PCIE_RECEIVE, (), MIB_PER_SECOND)
    return out | _cycles()


def _cycles() -> dict[int, Metric]:
    pipes = {name: name.lower() for name in ("HMMA", "IMMA", "DMMA", "DFMA", "INTEGER", "FP64", "FP32", "FP16")}
    out = {
        getattr(nv, f"NVML_GPM_METRIC_{name}_CYCLES_ACTIVE"): Metric(of.PIPE_CYCLES, (pipe,), PLAIN)
        for name, pipe in {"MMA": "tensor", **pipes}.items()
    }
    out[nv.NVML_GPM_METRIC_SM_CYCLES_ELAPSED] = Metric(of.SM_CYCLES, (), PLAIN)
    out[nv.NVML_GPM_METRIC_SM_CYCLES_ACTIVE] = Metric(of.SM_ACTIVE_CYCLES, (), PLAIN)
    return out


def _of_board() -> dict[int, Metric]:
    """Metrics that only the whole GPU has: its links."""
    out = {
        nv.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: Metric(of.NVLINK_TRANSMIT, (), MIB_PER_SECOND),
        nv.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: Metric(of.NVLINK_RECEIVE, (), MIB_PER_SECOND),
    }
    for way, family in (("TX", of.NVLINK_LINK_TRANSMIT), ("RX", of.NVLINK_LINK_RECEIVE)):
        for number, id_ in _numbered("NVLINK_L", f"_{way}_PER_SEC", 72):
            out[id_] = Metric(family, (number,), MIB_PER_SECOND)
    for way, family in (("TX", of.C2C_TRANSMIT), ("RX", of.C2C_RECEIVE)):
        for kind, label in (("TOTAL", "all"), ("DATA", "data")):
            id_ = getattr(nv, f"NVML_GPM_METRIC_C2C_{kind}_{way}_PER_SEC")
            out[id_] = Metric(family, (label,), MIB_PER_SECOND)
    return out


_MANY = frozenset((of.ENGINE_ACTIVE, of.CONTEXT_SWITCHING, of.NVLINK_LINK_TRANSMIT, of.NVLINK_LINK_RECEIVE))
INSTANCE_METRICS = _of_both()
BOARD_METRICS = INSTANCE_METRICS | _of_board()


def _part(metrics: dict[int, Metric], detail: bool) -> dict[int, Metric]:
    """Those with a series for each engine or link, or all others."""
    return {id_: metric for id_, metric in metrics.items() if (metric.family in _MANY) == detail}


class Gpm(Group):
    help = "activity of SMs, tensor pipes, memory and links between two cycles (Hopper and later)"
    _slot: ClassVar[str] = "gpm"  # in `kept`: each part has samples of its own

    def __init__(self) -> None:
        self._of_board, self._of_instance = (_part(each, self.detail) for each in (BOARD_METRICS, INSTANCE_METRICS))

    def read(self, board: Board) -> Iterable[Value]:
        if not _supported(board):
            return ()
        sampler: Sampler | None = board.kept.get(self._slot)
        if sampler is None:
            wanted = _of_this(board, self._of_board)
            sampler = Sampler(board.calls, nv.nvmlGpmSampleGet, (board.handle,), wanted, _request(board))
            board.kept[self._slot] = sampler
        found = sampler.read()
        if sampler.first:
            board.why = "first_sample"
        return _values(found, self._of_board)

    def read_instance(self, board: Board, instance: Instance) -> Iterable[Value]:
        # The library knows GPU instances only: where one is cut further, its first MIG device tells for it.
        owners = board.kept.setdefault(f"{self._slot}_owners", {})
        if owners.setdefault(instance.gpu_instance_id, instance.id) != instance.id or not _supported(board):
            return ()
        sampler: Sampler | None = instance.kept.get(self._slot)
        if sampler is None:
            of_instance = (board.handle, instance.gpu_instance_id)
            sampler = Sampler(instance.calls, nv.nvmlGpmMigSampleGet, of_instance, self._of_instance, _request(board))
            instance.kept[self._slot] = sampler
        return _values(sampler.read(), self._of_instance)

    def close(self, board: Board) -> None:
        _close(board.kept, self._slot)

    def close_instance(self, instance: Instance) -> None:
        _close(instance.kept, self._slot)


class GpmParts(Gpm):
    help = "the same of each media engine, graphics engine and NVLink by itself"
    detail = True
    _slot = "gpm_parts"


def _of_this(board: Board, metrics: dict[int, Metric]) -> list[int]:
    """Metrics to ask for: of links only those that are there, for a driver may tell 0 of all that could be."""
    links, per_link = link_count(board), (of.NVLINK_LINK_TRANSMIT, of.NVLINK_LINK_RECEIVE)
    return [id_ for id_, (family, labels, _) in metrics.items() if family not in per_link or int(labels[0]) < links]


def _request(board: Board) -> Any:
    if "gpm_request" not in board.kept:
        board.kept["gpm_request"] = new_request()
    return board.kept["gpm_request"]


def _supported(board: Board) -> bool:
    """Asked once, as long as the handle lives."""
    if "gpm_supported" not in board.kept:
        told = board.ask(nv.nvmlGpmQueryDeviceSupport)
        if told is None:
            return False  # refused for good, or failed now: then it is asked again
        board.kept["gpm_supported"] = bool(told.isSupportedDevice)
        if not told.isSupportedDevice:
            board.calls.unsupported["gpm"] = "not_supported"
    return bool(board.kept["gpm_supported"])


def _values(found: dict[int, float], metrics: dict[int, Metric]) -> Iterable[Value]:
    for id_, amount in found.items():
        family, labels, factor = metrics[id_]
        # A counter read a moment late gives a little more than everything.
        yield Value(family, labels, min(1.0, amount * factor) if factor == PERCENT else amount * factor)


def _close(kept: dict[str, object], slot: str) -> None:
    sampler = kept.pop(slot, None)
    if isinstance(sampler, Sampler):
        sampler.close()


GROUPS.register("gpm")(Gpm())
GROUPS.register("gpm_parts")(GpmParts())
