"""What the driver says must be done to bring the GPU back: worth more to schedulers and alerts than error counts."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import recovery as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.fields import field_value, field_values
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group

_PREFIX = "NVML_GPU_RECOVERY_ACTION_"
ACTIONS = {getattr(nv, name): name.removeprefix(_PREFIX).lower() for name in dir(nv) if name.startswith(_PREFIX)}
_DRAIN = (nv.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P, nv.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
# Draining peers alone asks for no reset, nor does a domain of other nodes.
_NO_RESET = (
    nv.NVML_GPU_RECOVERY_ACTION_NONE,
    nv.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P,
    nv.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN,
)
_OLDER = ((nv.NVML_FI_DEV_RESET_STATUS, 0), (nv.NVML_FI_DEV_DRAIN_AND_RESET_STATUS, 0))


class Recovery(Group):
    help = "what the driver says the GPU needs: reset, drain, reboot"

    def read(self, board: Board) -> Iterable[Value]:
        told = field_value(board, nv.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, batch="recovery")
        if told is not None:
            action = int(told)
            yield Value(of.ACTION, (), action)
            yield Value(of.ACTION_INFO, (ACTIONS.get(action, f"action_{action}"),), 1)
            yield Value(of.RESET_NEEDED, (), 0 if action in _NO_RESET else 1)
            yield Value(of.DRAIN_NEEDED, (), 1 if action in _DRAIN else 0)
            return
        reset, drain = field_values(board, _OLDER, "recovery")  # what drivers before 570 tell
        if reset is not None:
            yield Value(of.RESET_NEEDED, (), 1 if reset or drain else 0)
        if drain is not None:
            yield Value(of.DRAIN_NEEDED, (), 1 if drain else 0)


GROUPS.register("recovery")(Recovery())
