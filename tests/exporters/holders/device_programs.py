"""Device programs (eBPF) as Slurm, systemd and container runtimes shape them, and the kernel's own verdict on them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

_CALL = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "s390x": 351, "riscv64": 280}
_PROG_LOAD, _PROG_ATTACH, _PROG_DETACH = 5, 8, 9
_TYPE_CGROUP_DEVICE, _ATTACH_DEVICE = 15, 6
_ALLOW_MULTI = 2


def op(code: int, target: int = 0, source: int = 0, offset: int = 0, imm: int = 0) -> bytes:
    return struct.pack("=BBhi", code, source << 4 | target, offset, imm)


LDX_W, JA, JNE_K, JEQ_K, EXIT, MOV64_K, MOV32_K, AND32_K, RSH32_K = (
    0x61, 0x05, 0x55, 0x15, 0x95, 0xB7, 0xB4, 0x54, 0x74,
)  # fmt: skip
# type -> r2, access -> r3, major -> r4, minor -> r5
HEAD = (
    op(LDX_W, 2, 1, 0) + op(AND32_K, 2, imm=0xFFFF) + op(LDX_W, 3, 1, 0) + op(RSH32_K, 3, imm=16)
    + op(LDX_W, 4, 1, 4) + op(LDX_W, 5, 1, 8)
)  # fmt: skip


def answer(allowed: bool) -> bytes:
    return op(MOV64_K, 0, imm=int(allowed)) + op(EXIT)


def slurm(rules: dict[tuple[int, int], bool], default: bool = True) -> bytes:
    """One block per device, which answers for it; what no block is about gets the default."""
    blocks = [
        op(JNE_K, 2, offset=4, imm=2)
        + op(JNE_K, 4, offset=3, imm=major)
        + op(JNE_K, 5, offset=2, imm=minor)
        + answer(allowed)
        for (major, minor), allowed in rules.items()
    ]
    return HEAD + b"".join(blocks) + answer(default)


def systemd(allowed: list[tuple[int, int]]) -> bytes:
    """A list of devices that jump to one end that allows, and one before it that denies."""
    blocks = b""
    for place, (major, minor) in enumerate(allowed):
        left = len(allowed) - place - 1
        blocks += op(JNE_K, 2, offset=3, imm=2) + op(JNE_K, 4, offset=2, imm=major)
        blocks += op(JEQ_K, 5, offset=left * 4 + 1 + 1, imm=minor) + op(JA, offset=0)
    return HEAD + blocks + op(JA, offset=2) + op(MOV32_K, 0, imm=1) + op(EXIT) + op(MOV32_K, 0, imm=0) + op(EXIT)


def folder_of_cgroup2() -> Path:
    """Where the kernel's cgroup v2 is; skips where it is not or may not be changed."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup2" and "rw" in options.split(",") and os.geteuid() == 0 and platform.machine() in _CALL:
            return Path(where)
    pytest.skip("no cgroup v2 that this user may change")


@contextlib.contextmanager
def cgroup(*programs: bytes, below: str = "") -> Iterator[Path]:
    """A new cgroup with these device programs attached to it, or to the folder `below` it; skips where the kernel
    refuses that. Yields the new one."""
    top = folder_of_cgroup2() / f"gpuwatch-test-{os.getpid()}"
    folder = top / below
    try:
        folder.mkdir(parents=True)
    except OSError as err:
        pytest.skip(f"no cgroup can be made: {err}")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    loaded: list[int] = []
    try:
        for program in programs:
            loaded.append(_load(program))
            _bpf(_PROG_ATTACH, struct.pack("=IIII", handle, loaded[-1], _ATTACH_DEVICE, _ALLOW_MULTI))
        yield top
    finally:
        for each in (*loaded, handle):
            os.close(each)
        while folder != top.parent:  # the kernel detaches the programs with the folder
            folder.rmdir()
            folder = folder.parent


def opens(folder: Path, device: str) -> bool:
    """Whether a process in the cgroup may open the device, as the kernel decides."""
    script = 'exec 2>/dev/null; echo $$ > "$0/cgroup.procs" && exec 3<>"$1"'
    return os.spawnlp(os.P_WAIT, "sh", "sh", "-c", script, str(folder), device) == 0


def _load(program: bytes) -> int:
    code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQIIQII", _TYPE_CGROUP_DEVICE, len(program) // 8, ctypes.addressof(code), ctypes.addressof(licence),
        0, 0, 0, 0, 0,
    )  # fmt: skip
    return _bpf(_PROG_LOAD, attributes)


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes.ljust(144, b"\0"), 144)
    result = ctypes.CDLL(None, use_errno=True).syscall(_CALL[platform.machine()], command, buffer, 144)
    if result < 0:
        pytest.skip(f"the kernel takes no device program: {os.strerror(ctypes.get_errno())}")
    return int(result)
