"""Reads protobuf's wire format: the fields of one message, without a schema.

protobuf's own runtime would cost 4 MB in every exporter and generated classes, for the texts of one answer.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no protobuf message."""


def fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, bytes) of each length-delimited field, in order; numbers and fixed fields are skipped.

    Raises WireError for a message that ends early or holds a wire type that protobuf no longer has.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at, end)
        kind = key & 7
        if kind == _BYTES:
            size, at = _varint(data, at, end)
            if size > end - at:
                raise WireError("a field is longer than its message")
            yield key >> 3, data[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at, end)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
            if at > end:
                raise WireError("a number is cut off")
        else:
            raise WireError(f"wire type {kind}")


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a number is cut off")
