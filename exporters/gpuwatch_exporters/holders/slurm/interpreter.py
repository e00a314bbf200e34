"""Runs a cgroup device program (eBPF) on one question: may a process here open this device?

Slurm, systemd and container runtimes write programs of loads, sums and jumps; what needs more (calls, maps, memory
besides the question) is not understood, which is told and never guessed.
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable
from functools import lru_cache

_MASK = {64: 2**64 - 1, 32: 2**32 - 1}
_CTX = 1 << 40  # where the question lies: an address that no program makes up by chance
_MAX_STEPS = 100_000
_CHAR, _READ, _WRITE = 2, 2, 4
_SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}


class NotUnderstoodError(Exception):
    """The program does something that this interpreter does not know."""


@lru_cache(maxsize=8192)  # the same few questions in every look, as long as a job runs
def allows(program: bytes, major: int, minor: int) -> bool:
    """Whether the program lets the character device be opened for reading and writing.

    program: instructions as the kernel gives them, 8 bytes each in the machine's order. Raises NotUnderstoodError.
    """
    question = struct.pack("=III", (_READ | _WRITE) << 16 | _CHAR, major, minor)
    return _run(program, question) & _MASK[32] != 0


def _run(program: bytes, question: bytes) -> int:
    if len(program) % 8:
        raise NotUnderstoodError("a program of no whole instructions")
    code = list(struct.iter_unpack("=BBhi", program))
    registers = [0] * 11
    registers[1] = _CTX
    at = 0
    for _ in range(_MAX_STEPS):
        if not 0 <= at < len(code):
            raise NotUnderstoodError("a jump out of the program")
        op, pair, offset, imm = code[at]
        target, source = pair & 0xF, pair >> 4
        if target > 10 or source > 10:
            raise NotUnderstoodError("a register that does not exist")
        kind = op & 0x07
        at += 1
        if op == 0x95:
            return registers[0]
        if kind in (0x04, 0x07):
            right = registers[source] if op & 0x08 else imm
            registers[target] = _sum(op, 64 if kind == 0x07 else 32, registers[target], right, offset)
        elif kind in (0x05, 0x06):
            right = registers[source] if op & 0x08 else imm
            at += _jump(op, 64 if kind == 0x05 else 32, registers[target], right, offset, imm)
        elif kind == 0x01 and op & 0xE0 == 0x60:
            registers[target] = _load(question, registers[source] + offset - _CTX, _SIZES[op & 0x18])
        elif op == 0x18 and source == 0 and at < len(code):
            registers[target] = (imm & _MASK[32]) | (code[at][3] & _MASK[32]) << 32
            at += 1
        else:
            raise NotUnderstoodError(f"instruction {op:#04x}")
    raise NotUnderstoodError("a program without an end")


def _load(question: bytes, at: int, size: int) -> int:
    if at < 0 or at + size > len(question):
        raise NotUnderstoodError("memory besides the question")
    return int.from_bytes(question[at : at + size], sys.byteorder)


def _sum(op: int, bits: int, left: int, right: int, offset: int) -> int:
    mask = _MASK[bits]
    left, right, shift = left & mask, right & mask, right & (bits - 1)
    match op & 0xF0:
        case 0x70:  # shifts count modulo the width
            return left >> shift
        case 0x60:
            return left << shift & mask
        case 0xC0:
            return _signed(left, bits) >> shift & mask
        case 0x80:
            return -left & mask
        case 0xB0:
            return right
        case known if known in _SUMS and not offset:
            return _SUMS[known](left, right) & mask
    raise NotUnderstoodError(f"instruction {op:#04x}")


def _jump(op: int, bits: int, left: int, right: int, offset: int, imm: int) -> int:
    kind = op & 0xF0
    if kind == 0x00:
        return offset if bits == 64 else imm
    left, right = left & _MASK[bits], right & _MASK[bits]
    if kind in _UNSIGNED:
        return offset if _UNSIGNED[kind](left, right) else 0
    if kind in _SIGNED:
        return offset if _SIGNED[kind](_signed(left, bits), _signed(right, bits)) else 0
    raise NotUnderstoodError(f"instruction {op:#04x}")  # a call above all


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


_Compare = Callable[[int, int], object]
_SUMS: dict[int, Callable[[int, int], int]] = {
    0x00: operator.add, 0x10: operator.sub, 0x20: operator.mul, 0x40: operator.or_, 0x50: operator.and_,
    0xA0: operator.xor, 0x30: lambda a, b: a // b if b else 0, 0x90: lambda a, b: a % b if b else a,
}  # fmt: skip
_UNSIGNED: dict[int, _Compare] = {
    0x10: operator.eq, 0x50: operator.ne, 0x20: operator.gt, 0x30: operator.ge, 0x40: operator.and_,
    0xA0: operator.lt, 0xB0: operator.le,
}  # fmt: skip
_SIGNED: dict[int, _Compare] = {0x60: operator.gt, 0x70: operator.ge, 0xC0: operator.lt, 0xD0: operator.le}
