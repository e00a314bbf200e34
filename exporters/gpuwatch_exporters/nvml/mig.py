"""The MIG devices of a board: which there are in this cycle, their profile names and their placements.

Each cycle asks for what tells a change (handles, uuids, sizes); everything else is asked once per layout.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from typing import Any, NamedTuple

import pynvml as nv

from gpuwatch_exporters.nvml.calls import DriverGoneError
from gpuwatch_exporters.nvml.group import Board, Instance

_GIB = 1 << 30
_PROFILE = re.compile(r"(?:\d+c\.)?\d+g\.\d+gb(?:[+-][a-z0-9.]+)*", re.IGNORECASE)
_EIGHTHS = 8  # memory slices of a GPU, in which profiles are counted


class Found(NamedTuple):
    """A MIG device as the layout's signature sees it: two equal ones are the same device."""

    address: int  # the handle's own number: a new one after the layout changed
    uuid: str
    gpu_slices: int | None
    compute_slices: int | None
    memory_mib: int | None


def enabled(board: Board) -> bool | None:
    """Whether the board is in MIG mode; None where the call failed now, which tells nothing."""
    modes = board.ask(nv.nvmlDeviceGetMigMode)
    if modes is None:
        return False if (nv.nvmlDeviceGetMigMode, ()) in board.calls.unsupported else None
    return bool(modes[0] == nv.NVML_DEVICE_MIG_ENABLE)


def why_disabled(board: Board) -> str:
    """Why a board that is not in MIG mode is not: mig_disabled, or what the library said to the question."""
    return board.calls.unsupported.get((nv.nvmlDeviceGetMigMode, ()), "mig_disabled")


def scan(board: Board) -> list[tuple[Any, Found]] | None:
    """(handle, what tells it apart) of each MIG device; None where a call failed, so that the list may lack some."""
    limit = board.ask(nv.nvmlDeviceGetMaxMigDeviceCount)
    if limit is None and (nv.nvmlDeviceGetMaxMigDeviceCount, ()) not in board.calls.unsupported:
        return None
    found: list[tuple[Any, Found]] = []
    for index in range(limit or _EIGHTHS):
        if board.calls.closed:
            raise DriverGoneError("closed")
        try:
            handle = nv.nvmlDeviceGetMigDeviceHandleByIndex(board.handle, index)
            uuid = nv.nvmlDeviceGetUUID(handle)
        except nv.NVMLError as err:
            if err.value in (nv.NVML_ERROR_NOT_FOUND, nv.NVML_ERROR_INVALID_ARGUMENT):
                continue  # gaps are possible
            board.calls.failed("nvmlDeviceGetMigDeviceHandleByIndex", ("mig", index, err.value), err.value)
            return None
        size = _attributes(handle)
        address = ctypes.cast(handle, ctypes.c_void_p).value or 0
        slices = (
            (size.gpuInstanceSliceCount, size.computeInstanceSliceCount, size.memorySizeMB) if size else (None,) * 3
        )
        found.append((handle, Found(address, uuid, *slices)))
    return found


def instances(board: Board, found: list[tuple[Any, Found]]) -> list[Instance]:
    """The MIG devices with everything that stays as long as the layout does. Their order is the library's."""
    ids = [(_number(nv.nvmlDeviceGetGpuInstanceId, handle), _number(nv.nvmlDeviceGetComputeInstanceId, handle))
           for handle, _ in found]  # fmt: skip
    shared = Counter(gpu_instance for gpu_instance, _ in ids)
    out = []
    for (handle, seen), (gpu_instance, compute_instance) in zip(found, ids, strict=True):
        if gpu_instance is None or compute_instance is None:
            continue  # destroyed meanwhile: the next cycle sees the new layout
        info = _instance_info(board, gpu_instance)
        id_ = f"{gpu_instance}/{compute_instance}" if shared[gpu_instance] > 1 else str(gpu_instance)
        out.append(
            Instance(
                handle=handle, id=id_, uuid=seen.uuid,
                gpu_instance_id=gpu_instance, compute_instance_id=compute_instance,
                profile=_profile(board, handle, seen, info.profileId if info else None),
                placement_start=info.placement.start if info else None,
                placement_size=info.placement.size if info else None,
                calls=board.calls.renewed(),
            )
        )  # fmt: skip
    return out


def profile_name(board: Board, profile_id: int) -> str | None:
    """The driver's name of a GPU instance profile, "1g.10gb+me"; None from a driver that gives none."""
    info = _try(nv.nvmlDeviceGetGpuInstanceProfileInfoById, board.handle, profile_id)
    if info is None:  # an older driver: look through all of them
        kinds = range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT)
        every = (_try(nv.nvmlDeviceGetGpuInstanceProfileInfo, board.handle, kind) for kind in kinds)
        info = next((each for each in every if each is not None and each.id == profile_id), None)
    return clean_name(info.name) if info is not None else None


def clean_name(text: bytes | str) -> str | None:
    """The profile in a text of the driver ("MIG 1g.10gb"); None for a placeholder or anything else."""
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    found = _PROFILE.fullmatch(plain.strip().removeprefix("MIG").strip())
    return found[0].lower() if found else None


def size_name(slices: int, memory_mib: int, board_bytes: int) -> str:
    """A profile's name from its sizes: memory counts in eighths of the board's, rounded up, as the driver's do."""
    eighths = math.ceil(memory_mib * (1 << 20) / board_bytes * _EIGHTHS)
    return f"{slices}g.{round(eighths / _EIGHTHS * math.ceil(board_bytes / _GIB))}gb"


def _profile(board: Board, handle: Any, seen: Found, profile_id: int | None) -> str | None:
    """From the profile's own name, else (no rights, older driver) the device's name, else its sizes."""
    whole = profile_name(board, profile_id) if profile_id is not None else None
    if whole is not None:
        part = seen.compute_slices is not None and seen.gpu_slices is not None and seen.compute_slices < seen.gpu_slices
        return f"{seen.compute_slices}c.{whole}" if part else whole
    device = _try(nv.nvmlDeviceGetName, handle)
    if device and " MIG " in device and (told := clean_name(device.rpartition(" MIG ")[2])):
        return told
    memory = _try(nv.nvmlDeviceGetMemoryInfo, board.handle)
    if memory is None or not memory.total or not seen.gpu_slices or not seen.memory_mib:
        return None
    whole = size_name(seen.gpu_slices, seen.memory_mib, memory.total)
    part = seen.compute_slices is not None and seen.compute_slices < seen.gpu_slices
    return f"{seen.compute_slices}c.{whole}" if part else whole


def _instance_info(board: Board, gpu_instance: int) -> Any:
    handle = _try(nv.nvmlDeviceGetGpuInstanceById, board.handle, gpu_instance)
    return _try(nv.nvmlGpuInstanceGetInfo, handle) if handle is not None else None


def _attributes(handle: Any) -> Any:
    return _try(nv.nvmlDeviceGetAttributes_v2, handle)


def _number(function: Any, handle: Any) -> int | None:
    found: int | None = _try(function, handle)
    return found


def _try(function: Any, *arguments: Any) -> Any:
    """The answer, or None for any error: these calls only name things; a lost device shows in those that follow."""
    try:
        return function(*arguments)
    except (nv.NVMLError, nv.NVMLLibraryMismatchError):
        return None
