"""The device programs that are attached to a cgroup v2 folder, read from the kernel (bpf(2)) as bpftool does.

Needs CAP_SYS_ADMIN. The programs are read, never changed; every descriptor is closed at once.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from gpuwatch_exporters.holders.slurm.interpreter import allows

_CALL_NUMBER = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "s390x": 351, "riscv64": 280}
_PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _PROG_QUERY = 13, 15, 16
_CGROUP_DEVICE = 6
_MAX_PROGRAMS, _MAX_PROGRAM_BYTES = 64, 8 * 1_000_000
_INFO_BYTES = 256
_ATTRIBUTE_BYTES = 144  # the kernel may write fields that it learned later
# Offsets in struct bpf_prog_info
_XLATED_LENGTH, _XLATED_POINTER = 20, 32


class DeniedError(Exception):
    """The kernel does not show device programs to this user."""


def rule_of(folder: Path) -> Callable[[int, int], bool] | None:
    """(major, minor) -> allowed, when programs are attached to this very folder; None where there are none. With
    several, each must allow, as the kernel has it. Raises DeniedError; the rule raises NotUnderstoodError, for a
    program that the kernel hides too.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = [_instructions(each) for each in _attached(handle)]
    except PermissionError:
        raise DeniedError from None
    except OSError:  # a kernel without these calls, or a program that went meanwhile
        return None
    finally:
        os.close(handle)
    if not found:
        return None
    return lambda major, minor: all(allows(program, major, minor) for program in found)


def _attached(handle: int) -> list[int]:
    """Ids of the device programs attached to an open cgroup folder."""
    ids = (ctypes.c_uint32 * _MAX_PROGRAMS)()
    question = bytearray(struct.pack("=IIIIQI", handle, _CGROUP_DEVICE, 0, 0, ctypes.addressof(ids), _MAX_PROGRAMS))
    _bpf(_PROG_QUERY, question)
    [count] = struct.unpack_from("=I", question, 24)
    return list(ids[: min(count, _MAX_PROGRAMS)])


@lru_cache(maxsize=512)  # a program never changes, and the kernel gives no number twice
def _instructions(program_id: int) -> bytes:
    handle = _bpf(_PROG_GET_FD_BY_ID, bytearray(struct.pack("=III", program_id, 0, 0)))
    try:
        [size] = struct.unpack_from("=I", _info(handle, 0, 0), _XLATED_LENGTH)
        if not 0 < size <= _MAX_PROGRAM_BYTES:
            return b""  # hidden from us
        out = ctypes.create_string_buffer(size)
        info = _info(handle, size, ctypes.addressof(out))
        [shown] = struct.unpack_from("=Q", info, _XLATED_POINTER)
        return out.raw if shown else b""
    finally:
        os.close(handle)


def _info(handle: int, size: int, pointer: int) -> bytes:
    info = ctypes.create_string_buffer(_INFO_BYTES)
    struct.pack_into("=I", info, _XLATED_LENGTH, size)
    struct.pack_into("=Q", info, _XLATED_POINTER, pointer)
    _bpf(_OBJ_GET_INFO_BY_FD, bytearray(struct.pack("=IIQ", handle, _INFO_BYTES, ctypes.addressof(info))))
    return info.raw


def _bpf(command: int, attributes: bytearray) -> int:
    """The system call; attributes are changed in place. Raises OSError."""
    number = _CALL_NUMBER.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "bpf(2) is not known on this machine")
    library = ctypes.CDLL(None, use_errno=True)
    attributes.extend(bytes(_ATTRIBUTE_BYTES - len(attributes)))
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = library.syscall(number, command, ctypes.byref(buffer), len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)
