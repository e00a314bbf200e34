"""Memory of boards and MIG instances. Older drivers have no reserved amount and count it as used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pynvml as nv

from gpuwatch_exporters.device.families import memory as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group, Instance
from gpuwatch_exporters.nvml.readings import known

# These share the host's memory. Their driver has no amounts to tell, and no call says that this is why.
_UNIFIED = re.compile(r"\b(GB10|Thor|Orin)\b")  # a GB100 is another one


class Memory(Group):
    help = "memory in total, used, free and reserved, per GPU and MIG instance"

    def read(self, board: Board) -> Iterable[Value]:
        unified = _UNIFIED.search(board.identity.model) is not None
        values = () if unified else tuple(_memory(board))
        if unified or values:
            yield Value(of.MODEL_INFO, ("unified" if unified else "dedicated",), 1)
        yield from values
        window = board.ask(nv.nvmlDeviceGetBAR1MemoryInfo)
        if window is not None and not unified:
            for family, told in (
                (of.BAR1_TOTAL, window.bar1Total), (of.BAR1_USED, window.bar1Used), (of.BAR1_FREE, window.bar1Free),
            ):  # fmt: skip
                yield Value(family, (), told)

    def read_instance(self, board: Board, instance: Instance) -> Iterable[Value]:
        return _memory(instance)


def _memory(who: Board | Instance) -> Iterator[Value]:
    told = who.ask(nv.nvmlDeviceGetMemoryInfo, nv.nvmlMemory_v2)
    if told is None and (nv.nvmlDeviceGetMemoryInfo, (nv.nvmlMemory_v2,)) in who.calls.unsupported:
        told = who.ask(nv.nvmlDeviceGetMemoryInfo)  # not after a mere failure: it counts what is reserved as used
    if told is None or not told.total:
        return
    parts = ((of.TOTAL, told.total), (of.USED, told.used), (of.FREE, told.free))
    for family, amount in (*parts, (of.RESERVED, getattr(told, "reserved", None))):
        if amount is not None and known(who, "nvmlDeviceGetMemoryInfo", amount) is not None:
            yield Value(family, (), amount)


GROUPS.register("memory")(Memory())
