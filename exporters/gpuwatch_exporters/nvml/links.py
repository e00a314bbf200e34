"""How many NVLinks a board has: asked once, used by whatever goes through them one by one."""

from __future__ import annotations

import pynvml as nv

from gpuwatch_exporters.nvml.fields import field_value
from gpuwatch_exporters.nvml.group import Board

_MOST = 72  # more than any GPU has
_FIRST = (nv.nvmlDeviceGetNvLinkState, (0,))
_NONE = ("not_supported", "invalid_argument")  # what a board without links says of its first one


def link_count(board: Board) -> int:
    """Links of the board, 0 where it has none or does not tell. DeviceLostError, DriverGoneError."""
    known: int | None = board.kept.get("link_count")
    if known is None:
        told = field_value(board, nv.NVML_FI_DEV_NVLINK_LINK_COUNT, batch="link_count")
        known = _tried(board) if told is None else min(int(told), _MOST)
        if known is None:
            return 0  # failed now: asked again
        board.kept["link_count"] = known
    return known


def links_of(board: Board) -> range:
    """Numbers of the links, for groups that tell of nothing else: with none, that is why they give no value."""
    count = link_count(board)
    if board.kept.get("link_count") == 0:
        refused = board.calls.unsupported.get(_FIRST, "not_supported")
        board.why = "no_nvlink" if refused in _NONE else refused
    return range(count)


def _tried(board: Board) -> int | None:
    """An older driver does not count them: those that have a state are there. None where a call failed now."""
    for link in range(_MOST):
        if board.ask(nv.nvmlDeviceGetNvLinkState, link) is None:
            refused = (nv.nvmlDeviceGetNvLinkState, (link,)) in board.calls.unsupported
            return link if refused else None
    return _MOST
