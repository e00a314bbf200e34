"""Facts of the board and its settings. Texts that the library does not tell stay empty."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import pynvml as nv

from gpuwatch_exporters.device.families import board as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import Row, number, rows

_KIB = 1024


def _names(prefix: str, *leave: str) -> dict[int, str]:
    """Value -> name in lower case of the library's constants with this prefix."""
    found = {name.removeprefix(prefix): getattr(nv, name) for name in dir(nv) if name.startswith(prefix)}
    return {code: name.lower() for name, code in sorted(found.items()) if name not in ("COUNT", *leave)}


ARCHITECTURES = _names("NVML_DEVICE_ARCH_", "UNKNOWN")
COMPUTE_MODES = _names("NVML_COMPUTEMODE_")
VIRTUALIZATION_MODES = _names("NVML_GPU_VIRTUALIZATION_MODE_")
ADDRESSING_MODES = _names("NVML_DEVICE_ADDRESSING_MODE_")
_FACTS = (
    Row(nv.nvmlDeviceGetNumGpuCores, (), of.CORES),
    Row(nv.nvmlDeviceGetMemoryBusWidth, (), of.BUS_WIDTH, factor=1 / 8),
    Row(nv.nvmlDeviceGetMaxMigDeviceCount, (), of.MAX_MIG),
    Row(getattr(nv, "nvmlDeviceGetNumaNodeId", None), (), of.NUMA_NODE),
)
_SWITCHES = (
    Row(nv.nvmlDeviceGetPersistenceMode, (), of.PERSISTENCE),
    Row(nv.nvmlDeviceGetDisplayActive, (), of.DISPLAY_ACTIVE),
    Row(nv.nvmlDeviceGetDisplayMode, (), of.DISPLAY_ATTACHED),
    Row(nv.nvmlDeviceGetAccountingMode, (), of.ACCOUNTING),
)
_FIRST_OF_TWO = (
    (nv.nvmlDeviceGetAutoBoostedClocksEnabled, of.AUTO_BOOST),
    (getattr(nv, "nvmlDeviceGetDramEncryptionMode", None), of.ENCRYPTION),
)
_MODES = (
    (nv.nvmlDeviceGetComputeMode, COMPUTE_MODES, of.COMPUTE_MODE_INFO),
    (nv.nvmlDeviceGetVirtualizationMode, VIRTUALIZATION_MODES, of.VIRTUALIZATION_INFO),
    (getattr(nv, "nvmlDeviceGetAddressingMode", None), ADDRESSING_MODES, of.ADDRESSING_INFO),
)


class BoardFacts(Group):
    help = "what the board is: architecture, firmware, cores, place in a rack"
    cadence = "static"

    def read(self, board: Board) -> Iterable[Value]:
        texts = (_architecture(board), _capability(board), *_versions(board))
        if any(texts):
            yield Value(of.BOARD_INFO, texts, 1)
        yield from rows(board, _FACTS)
        yield from _platform(board)


class Settings(Group):
    help = "how the board is set up: modes, confidential computing, vGPUs"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        yield from rows(board, _SWITCHES)
        for function, family in _FIRST_OF_TWO:  # [now, after the next reset or by default]
            told = board.ask(function) if function else None
            if told is not None:
                yield Value(family, (), told[0])
        for function, names, family in _MODES:
            code = number(board, function)
            if code is not None:
                yield Value(family, (names.get(int(code), f"mode_{int(code)}"),), 1)
        split = board.ask(nv.nvmlDeviceGetConfComputeMemSizeInfo)
        if split is not None and split.protectedMemSizeKib:
            yield Value(of.PROTECTED_MEMORY, (), split.protectedMemSizeKib * _KIB)
            yield Value(of.UNPROTECTED_MEMORY, (), split.unprotectedMemSizeKib * _KIB)
        guests = board.ask(nv.nvmlDeviceGetActiveVgpus)
        if guests is not None:
            yield Value(of.VGPUS, (), len(guests))


class PerformanceState(Group):
    help = "P-state"

    def read(self, board: Board) -> Iterable[Value]:
        state = number(board, nv.nvmlDeviceGetPerformanceState)
        if state is not None and state != nv.NVML_PSTATE_UNKNOWN:
            yield Value(of.PERFORMANCE_STATE, (), state)


def _architecture(board: Board) -> str:
    code = number(board, nv.nvmlDeviceGetArchitecture)
    return "" if code is None else ARCHITECTURES.get(int(code), f"arch_{int(code)}")


def _capability(board: Board) -> str:
    told = board.ask(nv.nvmlDeviceGetCudaComputeCapability)
    return "" if told is None else f"{told[0]}.{told[1]}"


def _versions(board: Board) -> tuple[str, ...]:
    functions: tuple[Callable[..., Any], ...] = (
        nv.nvmlDeviceGetVbiosVersion,
        nv.nvmlDeviceGetBoardPartNumber,
        nv.nvmlDeviceGetGspFirmwareVersion,
        nv.nvmlDeviceGetInforomImageVersion,
    )
    return tuple(_text(board.ask(function)) for function in functions)


def _text(told: str | bytes | None) -> str:
    """The text, trimmed; "" where there is none, or where the library tells a placeholder for none."""
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else told or ""
    text = "".join(letter for letter in text if letter.isprintable()).strip()
    return "" if text.upper() in ("N/A", "[N/A]", "NULL", "UNKNOWN", "UNKNOWN ERROR") else text


def _platform(board: Board) -> Iterable[Value]:
    info = nv.c_nvmlPlatformInfo_v2_t()
    function = nv.nvmlDeviceGetPlatformInfo
    if board.calls.ask(function, board.handle, ctypes.byref(info), key=function) is None:
        return
    # Bytes as they are: nvidia-ml-py would make texts of them.
    raw, layout = bytes(info), type(info)
    serial = raw[layout.chassisSerialNumber.offset :][: layout.chassisSerialNumber.size].partition(b"\0")[0]
    numbers = (raw[each.offset] for each in (layout.slotNumber, layout.trayIndex, layout.hostId, layout.moduleId))
    yield Value(of.PLATFORM_INFO, (_text(serial), *map(str, numbers)), 1)


GROUPS.register("board")(BoardFacts())
GROUPS.register("settings")(Settings())
GROUPS.register("performance_state")(PerformanceState())
