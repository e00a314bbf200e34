"""Each NVLink by itself, about once a minute: a failing cable or port shows in one link long before the GPU fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pynvml as nv

from gpuwatch_exporters.device.families import nvlink as of
from gpuwatch_exporters.device.family import Family
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.node.pci import kernel_address
from gpuwatch_exporters.nvml.fields import Number, field_values
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.links import links_of

BYTES_PER_MEGABYTE = 1_000_000
# Up to Hopper: by the call for one counter of one link; where a driver has dropped it, by the field in its place.
_COUNTERS = (
    (nv.NVML_NVLINK_ERROR_DL_REPLAY, "replay"),
    (nv.NVML_NVLINK_ERROR_DL_RECOVERY, "recovery"),
    (nv.NVML_NVLINK_ERROR_DL_CRC_FLIT, "crc_flit"),
    (nv.NVML_NVLINK_ERROR_DL_CRC_DATA, "crc_data"),
    (nv.NVML_NVLINK_ERROR_DL_ECC_DATA, "ecc_data"),
)
_IN_PLACE = (
    (nv.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, "replay"),
    (nv.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, "recovery"),
    (nv.NVML_FI_DEV_NVLINK_ERROR_DL_CRC, "crc"),
)
# Blackwell and later: fields whose scope is the link.
_FIELDS: Sequence[tuple[int, Family, tuple[str, ...]]] = (
    (nv.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, of.LINK_TRANSMITTED, ()),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, of.LINK_RECEIVED, ()),
    (nv.NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, of.LINK_TRANSMITTED_PACKETS, ()),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, of.LINK_RECEIVED_PACKETS, ()),
    (nv.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, of.LINK_ERRORS, ("malformed_packet",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, of.LINK_ERRORS, ("buffer_overrun",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, of.LINK_ERRORS, ("receive",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, of.LINK_ERRORS, ("receive_remote",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, of.LINK_ERRORS, ("receive_general",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, of.LINK_ERRORS, ("local_integrity",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, of.LINK_ERRORS, ("transmit_discard",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, of.LINK_ERRORS, ("effective",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, of.LINK_ERRORS, ("symbol",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, of.LINK_RECOVERIES, ("successful",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, of.LINK_RECOVERIES, ("failed",)),
    (nv.NVML_FI_DEV_NVLINK_PLR_XMIT_BLOCKS, of.LINK_BLOCKS, ("first",)),
    (nv.NVML_FI_DEV_NVLINK_PLR_XMIT_RETRY_BLOCKS, of.LINK_BLOCKS, ("again",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_RAW_BER_V2, of.LINK_BIT_ERRORS, ("raw",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, of.LINK_BIT_ERRORS, ("effective",)),
    (nv.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, of.LINK_BIT_ERRORS, ("symbol",)),
    (nv.NVML_FI_DEV_NVLINK_GET_SPEED, of.LINK_SPEED, ()),
)
_FEC = [getattr(nv, f"NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_{mended}") for mended in range(16)]
_VERSIONS = {
    getattr(nv, name): name.removeprefix("NVML_NVLINK_VERSION_").replace("_", ".")
    for name in dir(nv)
    if name.startswith("NVML_NVLINK_VERSION_") and name[-1].isdigit()
}
_REMOTES = {
    nv.NVML_NVLINK_DEVICE_TYPE_GPU: "gpu",
    nv.NVML_NVLINK_DEVICE_TYPE_IBMNPU: "cpu",
    nv.NVML_NVLINK_DEVICE_TYPE_SWITCH: "switch",
    nv.NVML_NVLINK_DEVICE_TYPE_UNKNOWN: "unknown",
}


class NvLinkLinks(Group):
    help = "errors, traffic, speed and other end of each NVLink"
    cadence = "slow"
    detail = True

    def read(self, board: Board) -> Iterable[Value]:
        for link in links_of(board):
            yield from _info(board, link)
            yield from _counters(board, link)
            yield from _fields(board, link)


class NvLinkFec(Group):
    help = "what error correction had to mend on the NVLinks (Blackwell and later)"
    cadence = "slow"
    detail = True

    def read(self, board: Board) -> Iterable[Value]:
        links = links_of(board)
        for mended, id_ in enumerate(_FEC):
            blocks = field_values(board, [(id_, link) for link in links], "nvlink_fec")
            told = [each for each in blocks if each is not None]
            if told and len(told) == len(links):  # a sum over fewer links would make the counter fall
                yield Value(of.FEC_BLOCKS, (str(mended),), sum(told))


class NvLinkSwitches(Group):
    help = "NVLinks that lead to an NVSwitch"
    cadence = "static"

    def read(self, board: Board) -> Iterable[Value]:
        if links_of(board):
            [links] = field_values(board, [(nv.NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, 0)], "nvlink_static")
            if links is not None:
                yield Value(of.SWITCH_LINKS, (), links)


def _info(board: Board, link: int) -> Iterable[Value]:
    version = board.ask(nv.nvmlDeviceGetNvLinkVersion, link)
    remote = board.ask(nv.nvmlDeviceGetNvLinkRemoteDeviceType, link)
    place = board.ask(nv.nvmlDeviceGetNvLinkRemotePciInfo, link)
    if version is None and remote is None and place is None:
        return
    bus_id = place.busId if place is not None else ""
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id
    labels = (str(link), _VERSIONS.get(version, ""), _REMOTES.get(remote, ""), kernel_address(text))
    yield Value(of.LINK_INFO, labels, 1)


def _counters(board: Board, link: int) -> Iterable[Value]:
    told = [(kind, board.ask(nv.nvmlDeviceGetNvLinkErrorCounter, link, counter)) for counter, kind in _COUNTERS]
    if all(times is None for _, times in told):
        numbers = field_values(board, [(id_, link) for id_, _ in _IN_PLACE], "nvlink_links")
        told = [(kind, times) for (_, kind), times in zip(_IN_PLACE, numbers, strict=True)]
    for kind, times in told:
        if times is not None:
            yield Value(of.LINK_ERRORS, (str(link), kind), times)


def _fields(board: Board, link: int) -> Iterable[Value]:
    told = field_values(board, [(id_, link) for id_, _, _ in _FIELDS], "nvlink_links")
    for (_, family, labels), number in zip(_FIELDS, told, strict=True):
        if number is not None:
            yield Value(family, (str(link), *labels), _base_unit(family, number))


def _base_unit(family: Family, number: Number) -> Number:
    if family is of.LINK_SPEED:
        return number * BYTES_PER_MEGABYTE
    return error_rate(int(number)) if family is of.LINK_BIT_ERRORS else number


def error_rate(packed: int) -> float:
    """A bit error rate as the library packs it: four bits of mantissa above eight bits of a negative decimal
    exponent."""
    return float((packed >> 8 & 0xF) * 10.0 ** -(packed & 0xFF))


GROUPS.register("nvlink_links")(NvLinkLinks())
GROUPS.register("nvlink_fec")(NvLinkFec())
GROUPS.register("nvlink_switches")(NvLinkSwitches())
