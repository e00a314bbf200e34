"""Calls to NVML that keep faults apart: unsupported (asked once), failed now (no value), device lost, driver gone.

An error code never becomes a value. nvidia-ml-py raises NVMLError with the code in `.value`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import pynvml as nv

log = logging.getLogger(__name__)
T = TypeVar("T")

# What the device, driver or rights rule out until the driver is loaded anew or MIG changes: not asked again till then.
UNSUPPORTED = {
    nv.NVML_ERROR_INVALID_ARGUMENT: "invalid_argument",
    nv.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    nv.NVML_ERROR_NO_PERMISSION: "no_permission",
    nv.NVML_ERROR_FUNCTION_NOT_FOUND: "driver_too_old",
    nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "version_mismatch",
    nv.NVML_ERROR_DEPRECATED: "deprecated",
}
LOST = frozenset((nv.NVML_ERROR_GPU_IS_LOST, nv.NVML_ERROR_RESET_REQUIRED, nv.NVML_ERROR_GPU_NOT_FOUND))
DRIVER_GONE = frozenset(
    (nv.NVML_ERROR_UNINITIALIZED, nv.NVML_ERROR_DRIVER_NOT_LOADED, nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
)


class DeviceLostError(Exception):
    """This device no longer answers (it fell off the bus, or must be reset); others may."""


class DriverGoneError(Exception):
    """The library lost the driver: everything must be opened anew."""


class Calls:
    """The calls of one device. Used by one thread at a time; made anew after a re-init or a change of MIG."""

    def __init__(self, who: str) -> None:
        self._who = who  # for the log
        self.unsupported: dict[Hashable, str] = {}  # call -> reason
        self.failures: Counter[tuple[str, str]] = Counter()  # (function, error) that gave no value, ever
        self.refused = ""  # why the last call that was left out as unsupported was
        self.troubles = 0  # failures of these calls alone
        self.closed = False  # set from outside: whoever is at it stops at the next call
        self._told: set[tuple[str, str]] = set()

    def renewed(self) -> Calls:
        """For the same device after its handles changed: nothing counts as unsupported, the counts go on."""
        fresh = Calls(self._who)
        fresh.failures, fresh._told = self.failures, self._told
        return fresh

    def ask(self, function: Callable[..., T], *arguments: Any, key: Hashable = None) -> T | None:
        """The call's answer; None where it is unsupported or failed now.

        key tells calls apart where arguments cannot (buffers); by default (function, arguments).
        DeviceLostError and DriverGoneError pass through.
        """
        known = (function, arguments[1:]) if key is None else key  # [0] is the handle
        if known in self.unsupported:
            self.refused = self.unsupported[known]
            return None
        if self.closed:
            raise DriverGoneError("closed")
        try:
            return function(*arguments)
        except nv.NVMLError as err:
            self.failed(function.__name__, known, err.value)
        except nv.NVMLLibraryMismatchError:
            self.failed(function.__name__, known, nv.NVML_ERROR_FUNCTION_NOT_FOUND)
        except UnicodeDecodeError:  # bytes that were never written, in a serial number for one
            self.no_value(function.__name__, "not_text")
        return None

    def failed(self, name: str, known: Hashable, code: int) -> None:
        """Files an error code: raises for a lost device or driver, remembers what is unsupported, counts the rest."""
        if code in LOST:
            raise DeviceLostError(name)
        if code in DRIVER_GONE:
            raise DriverGoneError(name)
        reason = UNSUPPORTED.get(code)
        if reason is not None:
            self.unsupported[known] = reason
            self._tell(logging.DEBUG, name, reason)
        else:
            self.no_value(name, error_name(code))

    def no_value(self, name: str, error: str) -> None:
        """Counts a call that gave no value now."""
        self.failures[name, error] += 1
        self.troubles += 1
        self._tell(logging.WARNING, name, error)

    def _tell(self, level: int, name: str, reason: str) -> None:
        if (name, reason) not in self._told:
            self._told.add((name, reason))
            log.log(level, "%s: %s gives no value: %s", self._who, name, reason)


_NAMES = {
    getattr(nv, name): name.removeprefix("NVML_ERROR_").lower() for name in dir(nv) if name.startswith("NVML_ERROR_")
}


def error_name(code: int) -> str:
    """The code's name in lower case, or error_<code> for one that nvidia-ml-py does not know."""
    return _NAMES.get(code, f"error_{code}")
