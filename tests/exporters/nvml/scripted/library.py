"""The scripted library in this process, and boards and instances on it."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from pathlib import Path

import pynvml as nv
from gpuwatch_exporters.device.frame import Identity, Value
from gpuwatch_exporters.nvml.calls import Calls
from gpuwatch_exporters.nvml.group import Board, Group, Instance

U32, U64, I64, I32, REAL = 1, 3, 4, 5, 0  # value types of fields


def build(compiler: str, folder: Path) -> ctypes.CDLL:
    """Compiles it into the folder and loads it."""
    target = folder / "scripted.so"
    sources = sorted(Path(__file__).parent.glob("*.c"))
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", target, *sources], check=True)
    library = ctypes.CDLL(str(target))
    library.sc_device.restype = ctypes.POINTER(nv.struct_c_nvmlDevice_t)
    return library


class Scripted:
    """Sets the library's answers. Whatever is not set answers that it is not supported."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.sc_reset()

    def answer(self, function: str, code: int, gpu: int = -1) -> None:
        """From now on the function returns this code, until `allow`."""
        self.library.sc_return(function.encode(), gpu, code)

    def allow(self) -> None:
        """No more forced codes."""
        self.library.sc_allow()

    def calls(self, function: str) -> int:
        """How often it was called."""
        return int(self.library.sc_calls(function.encode()))

    def field(self, id_: int, value: float = 0, kind: int = U64, scope: int = 0, code: int = 0, gpu: int = 0) -> None:
        """One field's answer."""
        bits = struct.pack("<d", value) if kind == REAL else int(value).to_bytes(8, "little", signed=value < 0)
        self.library.sc_field(
            gpu, id_, ctypes.c_uint(scope), kind, code, ctypes.c_ulonglong(int.from_bytes(bits, "little"))
        )

    def metric(self, id_: int, value: float = 0, code: int = 0, gpu: int = 0, instance: int = 0) -> None:
        """One chip counter's answer."""
        self.library.sc_metric(gpu, instance, id_, code, ctypes.c_double(value))

    def event(self, kind: int, data: int = 0, gpu: int = 0) -> None:
        """An event happens."""
        self.library.sc_event(gpu, ctypes.c_ulonglong(kind), ctypes.c_ulonglong(data))

    def process(self, pid: int, memory: int, which: str = "compute", gpu: int = 0, instance: int = 0) -> None:
        """A process stands in a list."""
        kinds = ("compute", "graphics", "mps")
        self.library.sc_process(gpu, instance, kinds.index(which), pid, ctypes.c_ulonglong(memory))

    def board(self, gpu: int = 0, mig: bool = False) -> Board:
        """A board on this library."""
        return Board(self.library.sc_device(gpu, 0), Identity(gpu, f"GPU-{gpu}"), Calls(f"GPU {gpu}"), mig)

    def instance(self, id_: str, number: int = 1, gpu: int = 0) -> Instance:
        """A MIG device of GPU instance `number`."""
        handle = self.library.sc_device(gpu, number)
        return Instance(handle, id_, f"MIG-{id_}", number, 0, None, None, None, Calls(f"MIG {id_}"))


def read(group: Group, board: Board) -> list[Value]:
    """One cycle of one group."""
    board.cycle += 1
    return list(group.read(board))


def told(values: list[Value]) -> dict[tuple[str, ...], float]:
    """(name without gpuwatch_gpu_, labels ...) -> number; a sample told twice is an error."""
    out: dict[tuple[str, ...], float] = {}
    for family, labels, number in values:
        key = (family.name.removeprefix("gpuwatch_gpu_"), *labels)
        assert key not in out, f"{key} is told twice"
        assert len(labels) == len(family.labels)
        out[key] = number
    return out
