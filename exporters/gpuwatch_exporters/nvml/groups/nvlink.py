"""NVLink of the whole GPU, in each cycle: links that are up, bytes and errors of all of them."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import nvlink as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.fields import EVERY_LINK, field_values
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.links import links_of

KIB = 1024
_TRAFFIC = (
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, of.TRANSMITTED, "data"),
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, of.RECEIVED, "data"),
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, of.TRANSMITTED, "all"),
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, of.RECEIVED, "all"),
)
_ERRORS = (
    (nv.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "crc_flit"),
    (nv.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, "crc_data"),
    (nv.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "replay"),
    (nv.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "recovery"),
    (nv.NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, "ecc_data"),
)


class NvLink(Group):
    help = "NVLinks that are up, bytes and errors of all links together"

    def read(self, board: Board) -> Iterable[Value]:
        links = links_of(board)
        if not links:
            return
        yield Value(of.LINKS, (), len(links))
        yield from _states(board, links)
        sent = field_values(board, [(id_, EVERY_LINK) for id_, _, _ in _TRAFFIC], "nvlink")
        for (_, family, traffic), kib in zip(_TRAFFIC, sent, strict=True):
            if kib is not None:
                yield Value(family, (traffic,), kib * KIB)
        wrong = field_values(board, [(id_, 0) for id_, _ in _ERRORS], "nvlink")
        for (_, kind), times in zip(_ERRORS, wrong, strict=True):
            if times is not None:
                yield Value(of.ERRORS, (kind,), times)


def _states(board: Board, links: range) -> Iterable[Value]:
    states = [board.ask(nv.nvmlDeviceGetNvLinkState, link) for link in links]
    for link, state in enumerate(states):
        if state is not None:
            yield Value(of.LINK_UP, (str(link),), 1 if state else 0)
    if None not in states:
        yield Value(of.LINKS_UP, (), sum(1 for state in states if state))


GROUPS.register("nvlink")(NvLink())
