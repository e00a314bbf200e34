"""Processes with a context on the GPU or MIG instance: how many, and their memory. On a GPU in MIG mode they belong to
its instances."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpuwatch_exporters.device.families import processes as of
from gpuwatch_exporters.device.frame import Process, Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group, Instance
from gpuwatch_exporters.nvml.processes import Listed, listed, name_of


class Processes(Group):
    help = "processes with a context on the device, and their memory"

    def __init__(self, procfs: Path = Path("/proc"), most: int = 0) -> None:
        """most: processes of each device whose memory is told one by one, the largest; 0 for none, since each process
        that comes is a new series."""
        self._procfs, self._most = procfs, most

    def read(self, board: Board) -> Iterable[Value]:
        board.kept["processes"] = ()
        return () if board.mig_enabled else self._read(board, None)

    def read_instance(self, board: Board, instance: Instance) -> Iterable[Value]:
        instance.kept["processes"] = ()
        return self._read(instance, instance.id)

    def _read(self, device: Board | Instance, instance: str | None) -> Iterable[Value]:
        told = listed(device, self._procfs)
        device.kept["processes"] = tuple(
            Process(pid, amount, instance, told.kinds[pid]) for pid, amount in sorted(told.memory.items())
        )
        for kind, count in sorted(told.counts.items()):
            yield Value(of.PROCESSES, (kind,), count)
        if told.stale is not None:
            yield Value(of.STALE, (), told.stale)
        amounts = [amount for amount in told.memory.values() if amount is not None]
        if told.counts and told.whole and len(amounts) == len(told.memory):
            yield Value(of.MEMORY, (), sum(amounts))
        yield from self._largest(told)

    def _largest(self, told: Listed) -> Iterable[Value]:
        known = [(amount, pid) for pid, amount in told.memory.items() if amount is not None]
        for amount, pid in sorted(known, reverse=True)[: self._most]:
            yield Value(of.PROCESS_MEMORY, (str(pid), name_of(pid, self._procfs), told.kinds[pid]), amount)


GROUPS.register("processes")(Processes())
