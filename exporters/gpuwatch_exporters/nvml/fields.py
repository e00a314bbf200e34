"""Field values of a board, read in one raw call per batch and cycle: the library's newest numbers come this way.

Each value of a batch has its own return code. A batch is a family of fields under one name: a fault of the driver in
one family (NVLink) must not reach another (ECC), and fields that are asked slowly are not read in each cycle.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pynvml as nv

from gpuwatch_exporters.nvml.calls import UNSUPPORTED, DriverGoneError
from gpuwatch_exporters.nvml.group import Board

Number = int | float
Wanted = tuple[int, int]  # field id, scope id
EVERY_LINK = 0xFFFFFFFF  # scope id: all links of the GPU together

_FUNCTION = "nvmlDeviceGetFieldValues"
_MEMBERS = {
    nv.NVML_VALUE_TYPE_DOUBLE: ("dVal", None),
    nv.NVML_VALUE_TYPE_UNSIGNED_INT: ("uiVal", 0xFFFFFFFF),
    nv.NVML_VALUE_TYPE_UNSIGNED_LONG: ("ulVal", 0xFFFFFFFFFFFFFFFF),
    nv.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: ("ullVal", 0xFFFFFFFFFFFFFFFF),
    nv.NVML_VALUE_TYPE_SIGNED_LONG_LONG: ("sllVal", None),
    nv.NVML_VALUE_TYPE_SIGNED_INT: ("siVal", None),
    nv.NVML_VALUE_TYPE_UNSIGNED_SHORT: ("usVal", 0xFFFF),
}  # union member by type, and the value by which the library says that there is none


def field_value(board: Board, id_: int, scope: int = 0, batch: str = "board") -> Number | None:
    """The field's value in this cycle, in the library's unit; None where there is none.

    The first call in a cycle reads everything that was ever asked for in the batch. DeviceLostError, DriverGoneError.
    """
    return field_values(board, ((id_, scope),), batch)[0]


def field_values(board: Board, wanted: Iterable[Wanted], batch: str = "board") -> list[Number | None]:
    """The same for many fields; asked for together, they are together in the first call as well."""
    batches: dict[str, _Batch] = board.kept.setdefault("fields", {})
    mine = batches.get(batch)
    if mine is None:
        mine = batches[batch] = _Batch(batch)
    return mine.values(board, tuple(wanted))


@dataclass(slots=True)
class _Batch:
    name: str
    _ids: dict[Wanted, None] = field(default_factory=dict)  # an ordered set of what is still asked for
    _refused: set[Wanted] = field(default_factory=set)
    _values: dict[Wanted, Number] = field(default_factory=dict)
    _cycle: int = -1
    _array: Any = None
    _blank: bytes = b""  # the array as it is handed over: what the library does not fill is not read as a value

    def values(self, board: Board, wanted: tuple[Wanted, ...]) -> list[Number | None]:
        new = [each for each in dict.fromkeys(wanted) if each not in self._ids and each not in self._refused]
        if self._cycle != board.cycle:
            self._ids.update(dict.fromkeys(new))
            self._array = None if new else self._array
            self._cycle, self._values = board.cycle, {}
            if self._ids:
                self._read_all(board)
        elif new:
            self._ids.update(dict.fromkeys(new))
            self._array = None
            self._read(board, new, *_prepare(new))
        return [self._values.get(each) for each in wanted]

    def _read_all(self, board: Board) -> None:
        if self._array is None:
            self._array, self._blank = _prepare(self._ids)
        self._read(board, list(self._ids), self._array, self._blank)

    def _read(self, board: Board, wanted: list[Wanted], array: Any, blank: bytes) -> None:
        if board.calls.closed:
            raise DriverGoneError("closed")
        ctypes.memmove(array, blank, len(blank))
        code = _raw(board.handle, array)
        if code in UNSUPPORTED and len(wanted) > 1:  # some drivers refuse the whole for one of its parts
            for each in wanted:
                self._read(board, [each], *_prepare([each]))
            return
        if code:
            self._fault(board, wanted[0] if len(wanted) == 1 else None, code)
            return
        for each, told in zip(wanted, array, strict=True):
            if told.nvmlReturn:
                self._fault(board, each, told.nvmlReturn)
            elif (value := _value(told)) is not None:
                self._values[each] = value
            else:
                board.calls.failures[_FUNCTION, "no_value"] += 1

    def _fault(self, board: Board, which: Wanted | None, code: int) -> None:
        board.calls.failed(_FUNCTION, ("field", self.name, which), code)
        if which is not None and code in UNSUPPORTED:
            self._refused.add(which)
            self._ids.pop(which, None)
            self._array = None


def _prepare(wanted: Iterable[Wanted]) -> tuple[Any, bytes]:
    ids = list(wanted)
    array = (nv.c_nvmlFieldValue_t * len(ids))()
    for slot, (id_, scope) in zip(array, ids, strict=True):
        slot.fieldId, slot.scopeId, slot.nvmlReturn = id_, scope, nv.NVML_ERROR_UNKNOWN
    return array, bytes(array)


def _raw(handle: Any, array: Any) -> int:
    """The call's return code. The wrapper of nvidia-ml-py would build the array anew each time."""
    try:
        function = nv._nvmlGetFunctionPointer(_FUNCTION)
    except nv.NVMLError as err:
        return int(err.value)
    return int(function(handle, len(array), array))


def _value(told: Any) -> Number | None:
    member, nothing = _MEMBERS.get(told.valueType, (None, None))
    if member is None:
        return None
    value: Number = getattr(told.value, member)
    return None if value == nothing or not math.isfinite(value) else value
