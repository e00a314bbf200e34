"""Utilization of the board. On a board in MIG mode the driver has no such number: absent, never 0."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import utilization as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import share


class Utilization(Group):
    help = "share of time with a kernel running, and with memory traffic"

    def read(self, board: Board) -> Iterable[Value]:
        if board.mig_enabled:
            board.why = "mig_enabled"
            return
        rates = board.ask(nv.nvmlDeviceGetUtilizationRates)
        if rates is None:
            return
        for family, percent in ((of.UTILIZATION, rates.gpu), (of.MEMORY_CONTROLLER, rates.memory)):
            ratio = share(board, "nvmlDeviceGetUtilizationRates", percent)
            if ratio is not None:
                yield Value(family, (), ratio)


GROUPS.register("utilization")(Utilization())
