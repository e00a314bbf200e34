"""One feature on one board: how often it is read, and why it is off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pynvml as nv
import pytest
from gpuwatch_exporters.device.families import utilization as of
from gpuwatch_exporters.device.frame import Identity, Value
from gpuwatch_exporters.nvml import features
from gpuwatch_exporters.nvml.calls import Calls, DeviceLostError
from gpuwatch_exporters.nvml.features import Feature
from gpuwatch_exporters.nvml.group import Board, Cadence, Group


class Numbered(Group):
    """Each reading tells its number, by a call that answers as `code` says."""

    help = "numbers"

    def __init__(self, cadence: Cadence = "cycle") -> None:
        self.cadence = cadence  # type: ignore[misc]
        self.readings = 0
        self.code: int | None = None

    def call(self, handle: Any) -> int:
        if self.code is not None:
            raise nv.NVMLError(self.code)
        return self.readings

    def read(self, board: Board) -> Iterable[Value]:
        self.readings += 1
        told = board.ask(self.call)
        if told is not None:
            yield Value(of.UTILIZATION, (), told)


@pytest.fixture
def board() -> Board:
    return Board(None, Identity(0, "GPU-1"), Calls("GPU 0"))


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(features.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def numbers(feature: Feature, board: Board) -> list[float]:
    return [each.number for each in feature.read(board, []).board]


@pytest.mark.parametrize(
    ("cadence", "told"), [("cycle", [1, 2, 3, 4]), ("slow", [1, 1, 1, 2]), ("static", [1, 1, 1, 1])]
)
def test_how_often(board: Board, clock: Clock, cadence: Cadence, told: list[int]) -> None:
    feature = Feature("numbered", Numbered(cadence), Counter())
    found = []
    for wait in (10, 10, 40, 0):
        found += numbers(feature, board)
        clock.now += wait
    assert found == told


def test_a_static_value_that_failed_is_asked_for_again_after_a_while(board: Board, clock: Clock) -> None:
    group = Numbered("static")
    feature = Feature("numbered", group, Counter())
    group.code = nv.NVML_ERROR_UNKNOWN
    assert numbers(feature, board) == []
    assert feature.off == "failed"
    group.code = None
    assert numbers(feature, board) == []
    clock.now += 60
    assert numbers(feature, board) == [2]
    assert feature.off == ""
    clock.now += 1e6
    assert numbers(feature, board) == [2]


def test_what_is_not_supported_is_asked_for_once(board: Board) -> None:
    group = Numbered()
    feature = Feature("numbered", group, Counter())
    group.code = nv.NVML_ERROR_NO_PERMISSION
    for _ in range(3):
        assert numbers(feature, board) == []
        assert feature.off == "no_permission"
        group.code = None  # would answer now
    assert not board.calls.failures


def test_a_fault_of_the_program_keeps_what_was_read_before_it(board: Board) -> None:
    class Faulty(Group):
        help = "faulty"

        def read(self, board: Board) -> Iterable[Value]:
            yield Value(of.UTILIZATION, (), 1)
            raise KeyError("x")

    faults: Counter[str] = Counter()
    feature = Feature("faulty", Faulty(), faults)
    assert numbers(feature, board) == [1]
    assert faults == {"faulty": 1}


def test_a_lost_device_is_told_on(board: Board) -> None:
    group = Numbered()
    group.code = nv.NVML_ERROR_GPU_IS_LOST
    with pytest.raises(DeviceLostError):
        Feature("numbered", group, Counter()).read(board, [])


def test_what_another_feature_was_refused_is_known_of_this_one_too(board: Board) -> None:
    group = Numbered()
    group.code = nv.NVML_ERROR_NOT_SUPPORTED
    first, second = Feature("first", group, Counter()), Feature("second", group, Counter())
    first.read(board, [])
    second.read(board, [])
    assert second.off == "not_supported"
