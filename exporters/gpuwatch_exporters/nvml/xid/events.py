"""Waits for the library's events on a thread of its own: XIDs, and other faults that the driver tells as they happen.

The thread opens its own handles, so that a device that hangs holds up the waiting alone, never a cycle.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pynvml as nv

from gpuwatch_exporters.node.pci import kernel_address
from gpuwatch_exporters.nvml.calls import DRIVER_GONE, error_name
from gpuwatch_exporters.nvml.xid.book import XidBook

log = logging.getLogger(__name__)
WITNESS = "event"
STOP_SECONDS = 1.0
_WAIT_MILLISECONDS = 500  # a stop has to wait for so long
_AFTER_FAULT_SECONDS = 1.0
NAMES = {
    nv.nvmlEventTypeDoubleBitEccError: "double_bit_ecc",
    nv.nvmlEventTypeSingleBitEccErrorStorm: "single_bit_ecc_storm",
    nv.nvmlEventTypeDramRetirementEvent: "dram_retirement",
    nv.nvmlEventTypeDramRetirementFailure: "dram_retirement_failure",
    nv.nvmlEventTypeNonFatalPoisonError: "non_fatal_poison",
    nv.nvmlEventTypeFatalPoisonError: "fatal_poison",
    nv.nvmlEventTypeGpuUnavailableError: "gpu_unavailable",
    nv.nvmlEventTypeGpuRecoveryAction: "recovery_action",
}
_WANTED = nv.nvmlEventTypeXidCriticalError
for _each in NAMES:
    _WANTED |= _each


class EventWatcher:
    """One event set. `reason` is why it hears nothing: not_started, not_supported, uninitialized ..., or "" while at
    least one device is registered. Used by the thread of the cycle; the library must be open while it runs."""

    def __init__(self, book: XidBook, now: Callable[[], float] = time.time) -> None:
        """now: Unix time in seconds."""
        self.reason = "not_started"
        self._book, self._now = book, now
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._wanted: frozenset[str] = frozenset()  # replaced as a whole: the thread sees the old set or the new one

    def watch(self, pci_bus_ids: Iterable[str]) -> None:
        """These devices, and those of earlier calls, are watched from now on; starts the thread, anew if it ended with
        the driver. Never waits."""
        self._wanted |= frozenset(pci_bus_ids)
        if self._wanted and (self._thread is None or not self._thread.is_alive()):
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stop,), name="nvml-events", daemon=True
            )  # fmt: skip
            self._thread.start()

    def stop(self) -> bool:
        """Ends the thread and forgets the devices, before the library is shut; False while a call hangs."""
        thread, self._thread, self._wanted = self._thread, None, frozenset()
        self._stop.set()
        self.reason = "stopped"
        if thread is not None:
            thread.join(STOP_SECONDS)
        return thread is None or not thread.is_alive()

    def _run(self, stop: threading.Event) -> None:
        events = None
        try:
            events = nv.nvmlEventSetCreate()
            self._wait(events, stop)
        except (nv.NVMLError, nv.NVMLLibraryMismatchError) as err:
            self._file(stop, _reason(err))
        finally:
            if events is not None:
                _free(events)

    def _wait(self, events: Any, stop: threading.Event) -> None:
        """Registers devices as they come and waits for events, until told to stop or the driver is gone."""
        places: dict[int, str] = {}
        tried: set[str] = set()
        while not stop.is_set():
            for pci_bus_id in sorted(self._wanted - tried):
                tried.add(pci_bus_id)
                self._register(events, pci_bus_id, places, stop)
            if not places:  # nothing supports events: look again for new devices now and then
                stop.wait(_AFTER_FAULT_SECONDS)
                continue
            try:
                told = nv.nvmlEventSetWait_v2(events, _WAIT_MILLISECONDS)
            except nv.NVMLError as err:
                if err.value == nv.NVML_ERROR_TIMEOUT:
                    continue
                if err.value in DRIVER_GONE:
                    raise
                # A lost device makes each wait fail at once; the others may still speak.
                stop.wait(_AFTER_FAULT_SECONDS)
                continue
            self._tell(told, places)

    def _register(self, events: Any, pci_bus_id: str, places: dict[int, str], stop: threading.Event) -> None:
        try:
            handle = nv.nvmlDeviceGetHandleByPciBusId(pci_bus_id)
            kinds = nv.nvmlDeviceGetSupportedEventTypes(handle) & _WANTED
            if not kinds:
                raise nv.NVMLError(nv.NVML_ERROR_NOT_SUPPORTED)
            nv.nvmlDeviceRegisterEvents(handle, kinds, events)
        except (nv.NVMLError, nv.NVMLLibraryMismatchError) as err:
            if getattr(err, "value", None) in DRIVER_GONE:
                raise
            log.info("no events of %s: %s", pci_bus_id, _reason(err))
            if not places:
                self._file(stop, _reason(err))
            return
        places[_address(handle)] = pci_bus_id
        self._file(stop, "")

    def _tell(self, told: Any, places: dict[int, str]) -> None:
        pci_bus_id = places.get(_address(told.device)) or _place(told.device)
        if told.eventType == nv.nvmlEventTypeXidCriticalError:
            self._book.xid(WITNESS, pci_bus_id, told.eventData, self._now())
        elif told.eventType in NAMES:
            self._book.count("event", pci_bus_id, NAMES[told.eventType])

    def _file(self, stop: threading.Event, reason: str) -> None:
        if not stop.is_set():  # a thread that was told to stop speaks no more
            self.reason = reason


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _place(handle: Any) -> str:
    try:
        return kernel_address(nv.nvmlDeviceGetPciInfo(handle).busId)
    except (nv.NVMLError, nv.NVMLLibraryMismatchError):
        return "unknown"


def _free(events: Any) -> None:
    try:
        nv.nvmlEventSetFree(events)
    except (nv.NVMLError, nv.NVMLLibraryMismatchError) as err:
        log.debug("freeing the event set: %r", err)


def _reason(err: Exception) -> str:
    code = getattr(err, "value", None)
    return error_name(code) if isinstance(code, int) else "driver_too_old"
