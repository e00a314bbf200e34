"""The connection to a host engine: calls with their errors told apart, tried again with growing waits."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gpuwatch_exporters.dcgm.bindings import Bindings, open_library
from gpuwatch_exporters.dcgm.settings import Settings

log = logging.getLogger(__name__)
CONNECT_MS = 2000
_FIRST_WAIT = 1.0
# Errors after which nothing of the connection can be used.
_GONE = ("CONNECTION_NOT_VALID", "UNINITIALIZED", "TIMEOUT", "INIT_ERROR")


class EngineGoneError(Exception):
    """The host engine does not answer any more; the connection is closed."""


class RefusedError(Exception):
    """The host engine answered with an error; its text is the error's name in lower case, as in not_supported."""


class Engine:
    """One connection at a time. `reason` tells why there is none, "" while there is one. Used by one thread."""

    def __init__(self, bindings: Bindings, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.structs = bindings.structs
        self.failures: Counter[tuple[str, str]] = Counter()  # (function, error)
        self.connections = 0
        self.reason = "not_connected"
        self._agent, self._settings, self._monotonic = bindings.agent, settings, monotonic
        self._handle: Any = None
        self._names = {
            value: name.removeprefix("DCGM_ST_").lower()
            for name, value in vars(bindings.structs).items()
            if name.startswith("DCGM_ST_")
        }
        self._gone = {getattr(bindings.structs, f"DCGM_ST_{name}", None) for name in _GONE}
        self._wait, self._next = _FIRST_WAIT, 0.0
        open_library(bindings, settings.library)

    def ensure(self) -> bool:
        """Whether there is a connection; makes one when it is time to try again."""
        if self._handle is not None:
            return True
        if self._monotonic() < self._next:
            return False
        try:
            self._handle = self._connect()
        except self.structs.DCGMError as err:
            self._failed("connect", self._name(err))
            return False
        self.reason, self._wait = "", _FIRST_WAIT
        self.connections += 1
        log.info("connected to DCGM: %s", self._settings.told())
        return True

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of the bindings, the handle first. EngineGoneError, RefusedError."""
        found = getattr(self._agent, function, None)
        if (
            found is None
        ):  # bindings of DCGM 3 have no dcgmGetGpuStatus: a lack, counted once, and no fault of each cycle
            self.failures[function, "function_not_found"] = 1
            raise RefusedError("function_not_found")
        try:
            return found(self._handle, *arguments)
        except self.structs.DCGMError as err:
            name = self._name(err)
            if err.value in self._gone:
                self.failures[function, name] += 1
                self.close()
                self._failed(function, name)
                raise EngineGoneError(name) from err
            return self._refuse(function, name)

    def status_name(self, status: int) -> str:
        """The name of an error code, as RefusedError tells it."""
        return self._names.get(status, f"error_{abs(status)}")

    def callback(self, function: Callable[..., int]) -> Any:
        """The function as one that the library can call with (entity group, entity, values, count, anything)."""
        return self._agent.dcgmFieldValueEntityEnumeration_f(function)

    def close(self, reason: str = "closed") -> None:
        """Gives the connection back, with all that was watched through it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            stop = self._agent.dcgmStopEmbedded if self._settings.embedded else self._agent.dcgmDisconnect
            with suppress(self.structs.DCGMError):  # a connection that broke cannot be closed either
                stop(handle)
        self.reason, self._next = reason, 0.0

    def _connect(self) -> Any:
        structs = self.structs
        if self._settings.embedded:
            return self._agent.dcgmStartEmbedded(structs.DCGM_OPERATION_MODE_AUTO)
        options = structs.c_dcgmConnectV2Params_v2()
        options.persistAfterDisconnect = 0
        options.timeoutMs = CONNECT_MS
        options.addressIsUnixSocket = int(self._settings.is_socket)
        return self._agent.dcgmConnect_v2(self._settings.address, options)

    def _refuse(self, function: str, name: str) -> Any:
        self.failures[function, name] += 1
        raise RefusedError(name)

    def _failed(self, function: str, name: str) -> None:
        if self.reason != name:
            log.warning("DCGM at %s does not answer: %s (%s)", self._settings.told(), name, function)
        if function == "connect":
            self.failures[function, name] += 1
        self.reason, self._next = name, self._monotonic() + self._wait
        self._wait = min(2 * self._wait, self._settings.longest_wait)

    def _name(self, err: Any) -> str:
        return self.status_name(err.value)
