"""Opens a board: its handle by address, and who it says it is."""

from __future__ import annotations

from typing import Any

import pynvml as nv

from gpuwatch_exporters.device.frame import Identity
from gpuwatch_exporters.node.pci import kernel_address
from gpuwatch_exporters.nvml.calls import DRIVER_GONE, LOST, Calls, DeviceLostError, DriverGoneError, error_name
from gpuwatch_exporters.nvml.group import Board

# A PCI address (0000:18:00.0); the library's index where no bus is to be seen.
Address = str | int


class NotOpenError(Exception):
    """This device cannot be opened; `reason` is a down reason: not_listed, no_permission, irq_issue ..."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def open_board(address: Address, driver_version: str, calls: Calls) -> Board:
    """The board at this address. NotOpenError, DeviceLostError, DriverGoneError."""
    handle = _handle(address)
    uuid = calls.ask(nv.nvmlDeviceGetUUID, handle)
    if not uuid:
        raise NotOpenError("no_uuid")
    pci = calls.ask(nv.nvmlDeviceGetPciInfo, handle)
    told = kernel_address(_text(pci.busId)) if pci is not None else ""
    identity = Identity(
        index=calls.ask(nv.nvmlDeviceGetIndex, handle),
        uuid=_text(uuid),
        pci_bus_id=address if isinstance(address, str) else told,
        model=_text(calls.ask(nv.nvmlDeviceGetName, handle)),
        serial=_text(calls.ask(nv.nvmlDeviceGetSerial, handle)),
        minor=calls.ask(nv.nvmlDeviceGetMinorNumber, handle),
        driver_version=driver_version,
    )
    return Board(handle, identity, calls)


def _handle(address: Address) -> Any:
    ask = nv.nvmlDeviceGetHandleByPciBusId if isinstance(address, str) else nv.nvmlDeviceGetHandleByIndex
    try:
        return ask(address)
    except nv.NVMLError as err:
        if err.value in LOST:
            raise DeviceLostError(ask.__name__) from None
        if err.value in DRIVER_GONE:
            raise DriverGoneError(ask.__name__) from None
        listed = err.value not in (nv.NVML_ERROR_NOT_FOUND, nv.NVML_ERROR_INVALID_ARGUMENT)
        raise NotOpenError(error_name(err.value) if listed else "not_listed") from None


def _text(told: bytes | str | None) -> str:
    return told.decode("utf-8", "replace").strip() if isinstance(told, bytes) else (told or "").strip()
