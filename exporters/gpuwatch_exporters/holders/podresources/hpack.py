"""The little of HPACK (RFC 7541) that one call needs: headers written plainly, and one status read.

We ask for a header table of size 0, so that no header block depends on the ones before.
"""

from __future__ import annotations

_GRPC_STATUS = (b"grpc-status", bytes.fromhex("9acac8b21234da8f"))  # as it is, and in the Huffman code of HPACK


class HeaderError(ValueError):
    """A header block that is cut off."""


def literal(name: bytes, value: bytes) -> bytes:
    """A header that is not to be remembered, its name given by number; values here are shorter than 127 bytes."""
    return name + bytes((len(value),)) + value


def named(name: bytes, value: bytes) -> bytes:
    """The same with the name in full."""
    return b"\x00" + bytes((len(name),)) + literal(name, value)


def status(block: bytes) -> int | None:
    """grpc-status of a header block; None where it holds none that can be read. Raises HeaderError."""
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:  # name and value by number
                _, at = _integer(block, at, 7)
                continue
            if first & 0xE0 == 0x20:  # a new size of the table
                _, at = _integer(block, at, 5)
                continue
            number, at = _integer(block, at, 6 if first & 0x40 else 4)
            name = b""
            if number == 0:
                name, at = _text(block, at)
            value, at = _text(block, at)
            if name in _GRPC_STATUS and value.isdigit():  # digits are never shorter in Huffman's code
                return int(value)
    except IndexError:
        raise HeaderError("a header block is cut off") from None
    return None


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    size, at = _integer(block, at, 7)
    return block[at : at + size], at + size


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    mask = (1 << bits) - 1
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    shift = 0
    while True:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
