"""C2C links between the GPU and the CPU's chip, about once a minute."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import c2c as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.fields import field_value, field_values
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group

BYTES_PER_MEGABYTE = 1_000_000
_MOST = 32
_FIELDS = (
    (nv.NVML_FI_DEV_C2C_LINK_GET_STATUS, of.LINK_UP, (), 1),
    (nv.NVML_FI_DEV_C2C_LINK_GET_MAX_BW, of.LINK_SPEED, (), BYTES_PER_MEGABYTE),
    (nv.NVML_FI_DEV_C2C_LINK_POWER_STATE, of.LINK_LOW_POWER, (), 1),
    (nv.NVML_FI_DEV_C2C_LINK_ERROR_INTR, of.LINK_ERRORS, ("interrupt",), 1),
    (nv.NVML_FI_DEV_C2C_LINK_ERROR_REPLAY, of.LINK_ERRORS, ("replay",), 1),
    (nv.NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, of.LINK_ERRORS, ("replay_back_to_back",), 1),
)


class C2c(Group):
    help = "links between the GPU and the CPU's chip"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        mode = board.ask(nv.nvmlDeviceGetC2cModeInfoV)
        if mode is not None:
            yield Value(of.ENABLED, (), 1 if mode.isC2cEnabled else 0)
        count = field_value(board, nv.NVML_FI_DEV_C2C_LINK_COUNT, batch="c2c")
        if not count:
            return
        yield Value(of.LINKS, (), count)
        for link in range(min(int(count), _MOST)):
            told = field_values(board, [(id_, link) for id_, _, _, _ in _FIELDS], "c2c_links")
            for (_, family, labels, factor), number in zip(_FIELDS, told, strict=True):
                if number is not None:
                    yield Value(family, (str(link), *labels), number * factor)


GROUPS.register("c2c")(C2c())
