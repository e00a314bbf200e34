"""Activity from the chip's own counters, of GPUs and MIG instances."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml import gpm
from gpuwatch_exporters.nvml.group import Board, Instance
from gpuwatch_exporters.nvml.groups.gpm import BOARD_METRICS, INSTANCE_METRICS, Gpm, GpmParts

from tests.exporters.nvml.scripted.library import Scripted, read, told

SM, TENSOR, PCIE = nv.NVML_GPM_METRIC_SM_UTIL, nv.NVML_GPM_METRIC_ANY_TENSOR_UTIL, nv.NVML_GPM_METRIC_PCIE_TX_PER_SEC
GROUP, PARTS = Gpm(), GpmParts()


@pytest.fixture(autouse=True)
def any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpm, "SHORTEST_SECONDS", 0.0)


@pytest.fixture
def board(library: Scripted) -> Iterator[Board]:
    board = library.board()
    yield board
    GROUP.close(board)
    PARTS.close(board)
    assert library.library.sc_samples_alive() == 0


def second(board: Board) -> dict[tuple[str, ...], float]:
    """The first reading begins the window, the second ends it."""
    assert told(read(GROUP, board)) == {}
    return told(read(GROUP, board))


def test_percent_become_ratios_and_mebibytes_bytes(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    library.metric(TENSOR, 12.5)
    library.metric(PCIE, 2.0)
    assert second(board) == {
        ("sm_active_ratio",): 0.43,
        ("tensor_active_ratio",): 0.125,
        ("pcie_transmit_bytes_per_second",): 2 * 1024 * 1024,
    }


def test_everything_that_the_library_can_tell_has_a_name_of_its_own(library: Scripted, board: Board) -> None:
    for link in range(18):
        library.library.sc_link(0, link, 1, 2)
    for id_ in BOARD_METRICS:
        library.metric(id_, 50)
    assert told(read(PARTS, board)) == {}
    whole, parts = second(board), told(read(PARTS, board))
    assert not whole.keys() & parts.keys()
    values = {**whole, **parts}
    assert len(values) > 90
    assert all(number == 0.5 for (name, *_), number in values.items() if name.endswith("_ratio"))
    assert values["nvlink_link_receive_bytes_per_second", "17"] == 50 * 1024 * 1024
    assert ("nvlink_link_receive_bytes_per_second", "18") not in values  # no such link
    assert values["pipe_active_cycles_total", "tensor"] == 50


def test_what_one_metric_answers_does_not_reach_the_others(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    library.metric(TENSOR, 77.0, code=nv.NVML_ERROR_UNKNOWN)
    assert second(board) == {("sm_active_ratio",): 0.43}
    assert board.calls.failures["nvmlGpmMetricsGet", "unknown"] == 1
    library.metric(TENSOR, 50.0)
    assert ("tensor_active_ratio",) in told(read(GROUP, board))


def test_metrics_that_are_not_supported_are_asked_once(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    second(board)
    library.metric(TENSOR, 50.0)
    assert told(read(GROUP, board)) == {("sm_active_ratio",): 0.43}


def test_a_driver_that_refuses_all_for_a_new_one_gives_the_others(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    library.library.sc_metric_limit(97)
    assert second(board) == {("sm_active_ratio",): 0.43}
    before = library.calls("nvmlGpmMetricsGet")
    assert told(read(GROUP, board)) == {("sm_active_ratio",): 0.43}
    assert library.calls("nvmlGpmMetricsGet") == before + 1


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
def test_a_number_that_cannot_be_is_none(library: Scripted, board: Board, odd: float) -> None:
    library.metric(SM, odd)
    assert second(board) == {}


def test_a_little_more_than_everything_is_everything(library: Scripted, board: Board) -> None:
    library.metric(SM, 100.7)
    assert second(board) == {("sm_active_ratio",): 1.0}


def test_an_older_gpu_is_asked_once_whether_it_can(library: Scripted) -> None:
    board = library.board(gpu=3)
    assert [read(GROUP, board) for _ in range(3)] == [[], [], []]
    assert library.calls("nvmlGpmQueryDeviceSupport") == 1
    assert library.calls("nvmlGpmSampleAlloc") == 0
    assert "not_supported" in board.calls.unsupported.values()


def test_a_window_never_spans_a_reading_that_failed(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    second(board)
    library.answer("nvmlGpmSampleGet", nv.NVML_ERROR_TIMEOUT)
    assert read(GROUP, board) == []
    library.allow()
    assert read(GROUP, board) == []
    assert told(read(GROUP, board)) == {("sm_active_ratio",): 0.43}


def test_samples_that_are_all_refused_are_an_accident_at_first(library: Scripted, board: Board) -> None:
    library.metric(SM, 43.0)
    library.answer("nvmlGpmMetricsGet", nv.NVML_ERROR_INVALID_ARGUMENT)
    assert second(board) == {}
    library.allow()
    assert told(read(GROUP, board)) == {("sm_active_ratio",): 0.43}


def test_each_mig_instance_has_values_of_its_own(library: Scripted) -> None:
    board = library.board(mig=True)
    ones = [library.instance("1", 1), library.instance("2", 2)]
    library.metric(SM, 10.0, instance=1)
    library.metric(SM, 20.0, instance=2)
    for _ in range(2):
        values = [told(list(GROUP.read_instance(board, each))) for each in ones]
    assert values == [{("sm_active_ratio",): 0.1}, {("sm_active_ratio",): 0.2}]
    for each in ones:
        GROUP.close_instance(each)
    assert library.library.sc_samples_alive() == 0


def test_a_gpu_instance_that_is_cut_further_is_told_once(library: Scripted) -> None:
    board = library.board(mig=True)
    parts = [library.instance("1/0", 1), library.instance("1/1", 1)]
    library.metric(SM, 10.0, instance=1)
    for _ in range(2):
        values = [told(list(GROUP.read_instance(board, each))) for each in parts]
    assert values == [{("sm_active_ratio",): 0.1}, {}]
    GROUP.close_instance(parts[0])
    GROUP.close_instance(parts[1])
    assert library.library.sc_samples_alive() == 0


def test_no_sample_is_leaked_while_instances_come_and_go(library: Scripted) -> None:
    library.metric(SM, 10.0, instance=1)
    for _ in range(200):
        board = library.board(mig=True)
        instance: Instance = library.instance("1", 1)
        for _ in range(2):
            list(GROUP.read(board))
            list(GROUP.read_instance(board, instance))
        assert library.library.sc_samples_alive() == 4
        GROUP.close_instance(instance)
        GROUP.close(board)
    assert library.library.sc_samples_alive() == 0


def test_no_memory_for_the_second_sample(library: Scripted, board: Board) -> None:
    library.answer("nvmlGpmSampleAlloc", nv.NVML_ERROR_MEMORY)
    assert read(GROUP, board) == []
    assert board.calls.failures["nvmlGpmSampleAlloc", "memory"] == 1


def test_instances_are_not_asked_for_links() -> None:
    assert not [id_ for id_, metric in INSTANCE_METRICS.items() if "nvlink" in metric.family.name]
