"""The batch of field values: one call per cycle, each value by its own code and type."""

from __future__ import annotations

import math

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.calls import DRIVER_GONE, LOST, UNSUPPORTED, DeviceLostError, DriverGoneError
from gpuwatch_exporters.nvml.fields import field_value, field_values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exporters.nvml.scripted.library import I32, I64, REAL, U32, U64, Scripted

CALL = "nvmlDeviceGetFieldValues"
U16, ULONG = 6, 2
SILENT = -1  # the library leaves the field as it was handed over


@pytest.mark.parametrize(
    ("kind", "value"),
    [(U32, 4_000_000_000), (U64, 1 << 40), (ULONG, 7), (I64, -5), (I32, -1), (U16, 65_000), (REAL, 0.25)],
)
def test_each_type_is_read_as_what_it_is(library: Scripted, kind: int, value: float) -> None:
    library.field(82, value, kind)
    assert field_value(library.board(), 82) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [(U32, 0xFFFFFFFF), (U64, 0xFFFFFFFFFFFFFFFF), (ULONG, 0xFFFFFFFFFFFFFFFF), (REAL, math.nan), (REAL, math.inf),
     (99, 1)],
)  # fmt: skip
def test_what_means_no_value_is_none_and_counted(library: Scripted, kind: int, value: float) -> None:
    library.field(82, value, kind)
    board = library.board()
    assert field_value(board, 82) is None
    assert board.calls.failures[CALL, "no_value"] == 1


def test_all_that_is_wanted_comes_in_one_call_per_cycle(library: Scripted) -> None:
    for id_ in (1, 2, 3):
        library.field(id_, id_ * 10)
    board = library.board()
    for cycle in range(3):
        board.cycle = cycle
        before = library.calls(CALL)
        assert [field_value(board, id_) for id_ in (1, 2, 3)] == [10, 20, 30]
        if cycle:
            assert library.calls(CALL) == before + 1
            assert library.library.sc_field_batch() == 3


def test_within_a_cycle_values_are_read_once(library: Scripted) -> None:
    library.field(1, 10)
    board = library.board()
    assert field_value(board, 1) == 10
    library.field(1, 11)
    assert field_value(board, 1) == 10
    board.cycle += 1
    assert field_value(board, 1) == 11


def test_scopes_are_fields_of_their_own(library: Scripted) -> None:
    library.field(164, 100, scope=0)
    library.field(164, 200, scope=1)
    assert field_values(library.board(), [(164, 1), (164, 0), (164, 2)]) == [200, 100, None]


def test_what_is_not_supported_is_asked_once(library: Scripted) -> None:
    library.field(1, 10)
    library.field(2, code=nv.NVML_ERROR_NOT_SUPPORTED)
    board = library.board()
    assert field_values(board, [(1, 0), (2, 0)]) == [10, None]
    board.cycle += 1
    assert field_values(board, [(1, 0), (2, 0)]) == [10, None]
    assert library.library.sc_field_batch() == 1
    assert list(board.calls.unsupported.values()) == ["not_supported"]


def test_what_failed_now_is_asked_again(library: Scripted) -> None:
    library.field(1, code=nv.NVML_ERROR_UNKNOWN)
    board = library.board()
    assert field_value(board, 1) is None
    assert board.calls.failures == {(CALL, "unknown"): 1}
    library.field(1, 5)
    board.cycle += 1
    assert field_value(board, 1) == 5


def test_a_driver_that_refuses_the_whole_for_one_gives_the_others(library: Scripted) -> None:
    library.field(1, 10)
    library.field(2, 20)
    library.library.sc_field_limit(250)
    board = library.board()
    assert field_values(board, [(1, 0), (300, 0), (2, 0)]) == [10, None, 20]
    board.cycle += 1
    before = library.calls(CALL)
    assert field_values(board, [(1, 0), (300, 0), (2, 0)]) == [10, None, 20]
    assert library.calls(CALL) == before + 1


def test_a_batch_does_not_reach_another(library: Scripted) -> None:
    library.field(1, 10)
    library.library.sc_field_limit(250)
    board = library.board()
    field_value(board, 300, batch="nvlink")
    board.cycle += 1
    before = library.calls(CALL)
    assert field_value(board, 1, batch="ecc") == 10
    assert library.calls(CALL) == before + 1


def test_an_old_driver_without_the_call_is_asked_once(library: Scripted) -> None:
    library.answer(CALL, nv.NVML_ERROR_FUNCTION_NOT_FOUND)
    board = library.board()
    for _ in range(3):
        board.cycle += 1
        assert field_values(board, [(1, 0), (2, 0)]) == [None, None]
    assert library.calls(CALL) == 3  # together, then each
    assert set(board.calls.unsupported.values()) == {"driver_too_old"}


def test_values_of_an_earlier_cycle_are_gone_when_the_call_fails(library: Scripted) -> None:
    library.field(1, 10)
    board = library.board()
    assert field_value(board, 1) == 10
    library.answer(CALL, nv.NVML_ERROR_TIMEOUT)
    board.cycle += 1
    assert field_value(board, 1) is None


def test_what_the_library_does_not_fill_is_no_value_of_an_earlier_cycle(library: Scripted) -> None:
    library.field(1, 10)
    board = library.board()
    assert field_value(board, 1) == 10
    library.field(1, code=SILENT)
    board.cycle += 1
    assert field_value(board, 1) is None


def test_a_board_that_is_given_up_is_not_asked(library: Scripted) -> None:
    board = library.board()
    board.calls.closed = True
    with pytest.raises(DriverGoneError):
        field_value(board, 1)
    assert library.calls(CALL) == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=st.integers(1, 1000), of_call=st.booleans())
def test_no_error_code_becomes_a_value(library: Scripted, code: int, of_call: bool) -> None:
    library.library.sc_reset()
    library.field(1, 77, code=0 if of_call else code)
    if of_call:
        library.answer(CALL, code)
    board = library.board()
    if code in LOST:
        with pytest.raises(DeviceLostError):
            field_value(board, 1)
    elif code in DRIVER_GONE:
        with pytest.raises(DriverGoneError):
            field_value(board, 1)
    else:
        assert field_value(board, 1) is None
        assert bool(board.calls.unsupported) == (code in UNSUPPORTED)
