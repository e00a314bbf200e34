"""Pairs of samples of the chip's own counters, and what lies between them.

The window is the exporter's own cycle, however many scrapers there are: each reading takes a new sample and compares
it with the one before. Two samples per GPU or MIG instance are allocated once and freed with `close`.
"""

from __future__ import annotations

import ctypes
import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import pynvml as nv

from gpuwatch_exporters.nvml.calls import UNSUPPORTED, Calls, DriverGoneError

log = logging.getLogger(__name__)
SHORTEST_SECONDS = 0.1  # below this the driver has nothing new
LONGEST_SECONDS = 600.0  # its counters may have gone round since

_FUNCTION = "nvmlGpmMetricsGet"
_ODD_READINGS = 3  # in which all metrics may be refused at once before that counts as an answer


class Sampler:
    """The samples of one GPU or MIG instance. Used by one thread at a time."""

    def __init__(
        self, calls: Calls, take: Callable[..., Any], of: tuple[Any, ...], metrics: Iterable[int], request: Any
    ) -> None:
        """take(*of, sample): has the library fill a sample. metrics: ids to ask for. request: see new_request; those
        that are read by the same thread may share one."""
        self._calls, self._take, self._of = calls, take, of
        self._metrics = list(metrics)
        self._samples: list[Any] = []
        self._taken_at: float | None = None
        self.first = False  # whether the last reading took the first sample: there is nothing yet to compare it with
        self._odd = 0
        self._request = request
        self._blank: tuple[list[int], bytes] = ([], b"")  # metrics as they are handed over, built once

    def read(self) -> dict[int, float]:
        """Metric id -> value since the last reading, in the library's unit; only those that there are.

        The first reading gives nothing. DeviceLostError, DriverGoneError.
        """
        if not self._samples and not self._allocate():
            return {}
        older, newer = self._samples
        before, self._taken_at, self.first = self._taken_at, None, False
        if self._calls.ask(self._take, *self._of, newer, key=("gpm", "sample")) is None:
            return {}
        now = time.monotonic()
        self._samples, self._taken_at, self.first = [newer, older], now, before is None
        if before is None or not SHORTEST_SECONDS <= now - before <= LONGEST_SECONDS:
            return {}
        self._request.sample1, self._request.sample2 = older, newer
        return self._between(self._metrics)

    def close(self) -> None:
        """Frees the samples. Never raises."""
        samples, self._samples, self._taken_at = self._samples, [], None
        for each in samples:
            try:
                nv.nvmlGpmSampleFree(each)
            except (nv.NVMLError, nv.NVMLLibraryMismatchError) as err:
                log.debug("freeing a sample: %r", err)

    def _allocate(self) -> bool:
        for _ in range(2):
            sample = self._calls.ask(nv.nvmlGpmSampleAlloc, key=("gpm", "alloc"))
            if sample is None:
                self.close()
                return False
            self._samples.append(sample)
        return True

    def _between(self, wanted: list[int]) -> dict[int, float]:
        if not wanted:
            return {}
        code, told = self._ask(wanted)
        if code in UNSUPPORTED and len(wanted) > 1:
            # An older driver may refuse all for one that it does not know, or for their number.
            each = [self._ask([id_]) for id_ in wanted]
            told = [(id_, alone or mine[0][1], mine[0][2]) for id_, (alone, mine) in zip(wanted, each, strict=True)]
        elif code:
            told = [(id_, code, value) for id_, _, value in told]
        return self._judged(told)

    def _ask(self, wanted: list[int]) -> tuple[int, list[tuple[int, int, float]]]:
        """The call's return code, and (id, own return code, value) of each metric."""
        if self._calls.closed:
            raise DriverGoneError("closed")
        request = self._request
        if self._blank[0] != wanted:
            self._blank = (list(wanted), _blank(wanted))
        blank = self._blank[1]
        slots = request.metrics
        ctypes.memmove(slots, blank, len(blank))
        request.numMetrics = len(wanted)
        code = _raw(request)
        return code, [(slot.metricId, slot.nvmlReturn, slot.value) for slot in slots[: len(wanted)]]

    def _judged(self, told: list[tuple[int, int, float]]) -> dict[int, float]:
        """Keeps what is good, and asks no more for what the driver does not have."""
        if all(code == nv.NVML_ERROR_INVALID_ARGUMENT for _, code, _ in told) and self._odd < _ODD_READINGS:
            self._odd += 1  # something is wrong with these samples, not with the metrics
            self._calls.failures[_FUNCTION, "invalid_argument"] += 1
            return {}
        found: dict[int, float] = {}
        refused: set[int] = set()
        for id_, code, value in told:
            if code:
                self._calls.failed(_FUNCTION, ("gpm", id_), code)
                refused |= {id_} if code in UNSUPPORTED else set()
            elif math.isfinite(value) and value >= 0:
                found[id_] = value
            else:
                self._calls.failures[_FUNCTION, "no_value"] += 1
        if refused:
            self._metrics = [each for each in self._metrics if each not in refused]
        return found


def new_request() -> Any:
    """The struct of a question: 19 KB."""
    request = nv.c_nvmlGpmMetricsGet_t()
    request.version = nv.NVML_GPM_METRICS_GET_VERSION
    return request


def _blank(ids: list[int]) -> bytes:
    slots = (nv.c_nvmlGpmMetric_t * len(ids))()
    for slot, id_ in zip(slots, ids, strict=True):
        slot.metricId, slot.nvmlReturn, slot.value = id_, nv.NVML_ERROR_UNKNOWN, math.nan
    return bytes(slots)


def _raw(request: Any) -> int:
    try:
        function = nv._nvmlGetFunctionPointer(_FUNCTION)
    except nv.NVMLError as err:
        return int(err.value)
    return int(function(ctypes.byref(request)))
