"""The uuids of MIG devices, which Kubernetes hands out and DCGM does not tell: asked of NVML once per MIG layout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

_MOST = 8  # MIG devices per GPU, as of all products


def mig_uuids(gpus: Iterable[str]) -> dict[tuple[str, int], tuple[str, ...]]:
    """(GPU's uuid, GPU instance) -> uuids of its MIG devices. Empty where NVML is not here, or is another host's.

    The library is shut before this returns: the exporter holds no device open.
    """
    import pynvml as nv  # only hosts with MIG pay for it

    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    try:
        nv.nvmlInit()
    except nv.NVMLError:
        return {}
    try:
        for uuid in gpus:
            for handle in _devices(nv, uuid):
                found[uuid, nv.nvmlDeviceGetGpuInstanceId(handle)].append(nv.nvmlDeviceGetUUID(handle))
    except nv.NVMLError:  # a layout that changes meanwhile is asked for again with the change
        pass
    finally:
        nv.nvmlShutdown()
    return {key: tuple(uuids) for key, uuids in found.items()}


def _devices(nv: Any, uuid: str) -> list[Any]:
    try:
        board = nv.nvmlDeviceGetHandleByUUID(uuid)
    except nv.NVMLError:
        return []
    handles = []
    for index in range(_MOST):
        try:
            handles.append(nv.nvmlDeviceGetMigDeviceHandleByIndex(board, index))
        except nv.NVMLError:  # gaps are possible
            continue
    return handles
