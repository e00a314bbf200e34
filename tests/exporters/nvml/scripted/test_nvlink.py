"""NVLink: all links together in each cycle, each link by itself, and what error correction mended."""

from __future__ import annotations

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.fields import EVERY_LINK
from gpuwatch_exporters.nvml.groups.nvlink import NvLink
from gpuwatch_exporters.nvml.groups.nvlink_links import NvLinkFec, NvLinkLinks, NvLinkSwitches, error_rate

from tests.exporters.nvml.scripted.library import U32, Scripted, read, told

STATE, ERRORS = "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkErrorCounter"


def wire(library: Scripted, links: int = 3, counted: bool = True) -> None:
    for link in range(links):
        library.library.sc_link(0, link, 1, nv.NVML_NVLINK_DEVICE_TYPE_SWITCH)
    if counted:
        library.field(nv.NVML_FI_DEV_NVLINK_LINK_COUNT, links, U32)


def test_links_and_which_of_them_are_up(library: Scripted) -> None:
    wire(library)
    library.library.sc_link(0, 1, 0, 2)
    values = told(read(NvLink(), library.board()))
    assert values["nvlink_links",] == 3
    assert values["nvlink_links_up",] == 2
    assert [values["nvlink_link_up", str(link)] for link in range(3)] == [1, 0, 1]


def test_bytes_are_those_of_all_links_and_count_on_in_bytes(library: Scripted) -> None:
    wire(library)
    library.field(nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 5, scope=0)  # of link 0
    library.field(nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 7, scope=EVERY_LINK)
    library.field(nv.NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, 9, scope=EVERY_LINK)
    values = told(read(NvLink(), library.board()))
    assert values["nvlink_transmitted_bytes_total", "data"] == 7 * 1024
    assert values["nvlink_received_bytes_total", "all"] == 9 * 1024
    assert ("nvlink_received_bytes_total", "data") not in values


def test_errors_of_all_links_by_kind(library: Scripted) -> None:
    wire(library)
    library.field(nv.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, 4)
    library.field(nv.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, 0)
    values = told(read(NvLink(), library.board()))
    assert values["nvlink_errors_total", "replay"] == 4
    assert values["nvlink_errors_total", "crc_flit"] == 0
    assert ("nvlink_errors_total", "ecc_data") not in values


def test_a_gpu_without_links_tells_nothing_and_is_asked_once(library: Scripted) -> None:
    board = library.board()
    for _ in range(3):
        assert read(NvLink(), board) == []
        assert read(NvLinkLinks(), board) == []
        assert read(NvLinkFec(), board) == []
        assert read(NvLinkSwitches(), board) == []
    assert library.calls(STATE) == 1


def test_in_each_cycle_all_fields_come_in_one_call(library: Scripted) -> None:
    wire(library)
    library.field(nv.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, 4)
    library.field(nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 7, scope=EVERY_LINK)
    board = library.board()
    read(NvLink(), board)
    for _ in range(2):
        before = library.calls("nvmlDeviceGetFieldValues")
        read(NvLink(), board)
        assert library.calls("nvmlDeviceGetFieldValues") == before + 1


def test_an_older_driver_that_does_not_count_links(library: Scripted) -> None:
    wire(library, links=6, counted=False)
    assert told(read(NvLink(), library.board()))["nvlink_links",] == 6


def test_how_many_there_are_is_asked_again_when_it_failed(library: Scripted) -> None:
    wire(library, counted=False)
    library.field(nv.NVML_FI_DEV_NVLINK_LINK_COUNT, code=nv.NVML_ERROR_UNKNOWN)
    library.answer(STATE, nv.NVML_ERROR_UNKNOWN)
    board = library.board()
    assert read(NvLink(), board) == []
    library.allow()
    assert told(read(NvLink(), board))["nvlink_links",] == 3


def test_a_state_that_failed_leaves_the_sum_out(library: Scripted) -> None:
    wire(library)
    library.answer(STATE, nv.NVML_ERROR_UNKNOWN)
    values = told(read(NvLink(), library.board()))
    assert ("nvlink_links_up",) not in values
    assert ("nvlink_link_up", "0") not in values


def test_each_link_up_to_hopper(library: Scripted) -> None:
    wire(library)
    library.library.sc_link_errors(0, 2, nv.NVML_NVLINK_ERROR_DL_CRC_DATA, 9)
    library.field(nv.NVML_FI_DEV_NVLINK_GET_SPEED, 26562, U32, scope=2)
    values = told(read(NvLinkLinks(), library.board()))
    assert values["nvlink_link_errors_total", "2", "crc_data"] == 9
    assert values["nvlink_link_errors_total", "0", "crc_data"] == 0
    assert values["nvlink_link_speed_bytes_per_second", "2"] == 26_562_000_000
    assert values["nvlink_link_info", "2", "4.0", "switch", ""] == 1


def test_counters_of_a_driver_that_dropped_the_call(library: Scripted) -> None:
    wire(library, links=1)
    library.answer(ERRORS, nv.NVML_ERROR_NOT_SUPPORTED)
    library.field(nv.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, 3)
    library.field(nv.NVML_FI_DEV_NVLINK_ERROR_DL_CRC, 4)
    values = told(read(NvLinkLinks(), library.board()))
    assert {key[2]: number for key, number in values.items() if key[0] == "nvlink_link_errors_total"} == {
        "replay": 3,
        "crc": 4,
    }
    library.allow()
    values = told(read(NvLinkLinks(), library.board()))
    assert ("nvlink_link_errors_total", "0", "crc") not in values


def test_each_link_from_blackwell_on(library: Scripted) -> None:
    wire(library, links=2)
    library.answer(ERRORS, nv.NVML_ERROR_NOT_SUPPORTED)
    library.field(nv.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, 1 << 50, scope=1)
    library.field(nv.NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, 12, scope=1)
    library.field(nv.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, 3, scope=1)
    library.field(nv.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, 1, scope=0)
    library.field(nv.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, 0x0F0F, scope=0)
    library.field(nv.NVML_FI_DEV_NVLINK_PLR_XMIT_RETRY_BLOCKS, 8, scope=0)
    board = library.board()
    for _ in range(2):
        values = told(read(NvLinkLinks(), board))
    assert values["nvlink_link_transmitted_bytes_total", "1"] == 1 << 50
    assert values["nvlink_link_received_packets_total", "1"] == 12
    assert values["nvlink_link_errors_total", "1", "buffer_overrun"] == 3
    assert values["nvlink_link_recoveries_total", "0", "failed"] == 1
    assert values["nvlink_link_bit_error_ratio", "0", "symbol"] == pytest.approx(15e-15)
    assert values["nvlink_link_retry_layer_blocks_total", "0", "again"] == 8
    assert library.calls(ERRORS) == 2 * 5  # each counter of each link once: it is not supported


def test_what_was_mended_is_summed_over_all_links_or_not_told(library: Scripted) -> None:
    wire(library, links=2)
    clean, bad = nv.NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0, nv.NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15
    for link in range(2):
        library.field(clean, 100 + link, scope=link)
    library.field(bad, 5, scope=0)
    library.field(bad, code=nv.NVML_ERROR_UNKNOWN, scope=1)
    board = library.board()
    assert told(read(NvLinkFec(), board)) == {("nvlink_fec_blocks_total", "0"): 201}
    library.field(bad, 6, scope=1)
    assert told(read(NvLinkFec(), board))["nvlink_fec_blocks_total", "15"] == 11


def test_links_to_switches(library: Scripted) -> None:
    wire(library)
    library.field(nv.NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, 3, U32)
    assert told(read(NvLinkSwitches(), library.board())) == {("nvlink_switch_links",): 3}


@pytest.mark.parametrize(("packed", "rate"), [(0x0000, 0.0), (0x0100, 1.0), (0x0F0C, 15e-12), (0x01FF, 1e-255)])
def test_a_packed_error_rate(packed: int, rate: float) -> None:
    assert error_rate(packed) == pytest.approx(rate)
