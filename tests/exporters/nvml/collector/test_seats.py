"""Devices that hang or are slow, by a feature that waits at a gate: what a cycle tells of them and of the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from gpuwatch_exporters.device.families import utilization
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.group import Board, Group
from gpuwatch_exporters.nvml.settings import Settings

from tests.exporters.nvml.collector.stage import Stage, only_down, value

BUSY = "gpuwatch_gpu_utilization_ratio"
TIMEOUT, INTERVAL = 0.25, 0.4


class Gate(Group):
    """On GPU 1 a reading waits at the gate; each reading tells its number, in hundredths."""

    help = "a gate"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.readings = 0
        self.closed = 0

    def read(self, board: Board) -> Iterable[Value]:
        if board.identity.index == 1:
            self.readings += 1
            number = self.readings
            self.open.wait(30)
            yield Value(utilization.UTILIZATION, (), number / 100)
        else:
            yield Value(utilization.UTILIZATION, (), 1)

    def close(self, board: Board) -> None:
        self.closed += 1


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.fixture
def node(stage: Stage, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    stage.say("gpus 4")
    monkeypatch.setattr("gpuwatch_exporters.nvml.collector.CLOSE_SECONDS", 0.2)
    folders = {"sysfs": stage.tree.sys, "procfs": stage.tree.proc}
    settings = Settings("node-a", interval=INTERVAL, device_timeout=TIMEOUT, **folders)
    collector = Collector(settings, groups={"gate": gate})
    assert only_down(collector.collect()) == {}
    yield collector
    gate.open.set()
    collector.close()


def device_threads() -> int:
    return sum(each.name.startswith("gpu-") for each in threading.enumerate())


def test_a_hung_gpu_is_down_and_the_others_are_served_in_time(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    threads = device_threads()
    for cycle in range(1, 6):
        began = time.monotonic()
        frame = node.collect()
        assert time.monotonic() - began < TIMEOUT + 0.8
        assert only_down(frame) == {1: "hung"}
        assert frame.devices[1].values == ()  # nothing of an earlier cycle
        assert [value(frame.devices[number], BUSY) for number in (0, 2, 3)] == [1, 1, 1]
        assert value(frame, "gpuwatch_exporter_device_timeouts_total") == cycle
        assert (value(frame, "gpuwatch_gpus_expected"), value(frame, "gpuwatch_gpus_visible")) == (4, 4)
    assert device_threads() == threads
    assert gate.readings == 2  # the one that hangs is the last


def test_it_is_back_as_soon_as_it_answers(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    for _ in range(3):
        node.collect()
    gate.open.set()
    end = time.monotonic() + 10
    while only_down(node.collect()):
        assert time.monotonic() < end


def test_a_slow_gpu_is_told_by_the_next_cycle_once(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    assert only_down(node.collect()) == {1: "hung"}
    gate.open.set()
    _until(lambda: _idle(node))
    gate.open.clear()  # the next reading will be late as well
    frame = node.collect()
    assert only_down(frame) == {}
    assert value(frame.devices[1], BUSY) == 0.02
    assert only_down(node.collect()) == {1: "hung"}


def test_a_reading_that_hung_too_long_is_never_told(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    node.collect()
    time.sleep(1.5 * INTERVAL + TIMEOUT)  # what it read before is too old now
    gate.open.set()
    _until(lambda: _idle(node))
    gate.open.clear()
    assert only_down(node.collect()) == {1: "hung"}


def test_a_reading_of_an_earlier_opening_is_never_told(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    node.collect()
    node.release()
    node.resume()
    node.collect()
    gate.open.set()
    _until(lambda: _idle(node))
    gate.open.clear()
    assert set(only_down(node.collect())) == {1}


def test_a_slow_reading_is_broken_off_when_the_devices_are_released(stage: Stage) -> None:
    stage.say("gpus 1")
    settings = Settings("node-a", device_timeout=TIMEOUT, sysfs=stage.tree.sys, procfs=stage.tree.proc)
    collector = Collector(settings, groups={"slow": Slow()})
    assert only_down(collector.collect()) == {}
    Slow.wait = 0.02
    collector.collect()
    began = time.monotonic()
    assert collector.release()
    assert time.monotonic() - began < 1
    collector.close()


class Slow(Group):
    """Makes two hundred calls that take `wait` seconds each."""

    help = "slow"
    wait = 0.0

    def read(self, board: Board) -> Iterable[Value]:
        for number in range(200):
            board.ask(self.pause, number)
        yield Value(utilization.UTILIZATION, (), 1)

    def pause(self, handle: object, number: int) -> int:
        time.sleep(self.wait)
        return number


def test_hung_threads_do_not_pile_up_when_the_library_is_opened_anew(node: Collector, gate: Gate) -> None:
    gate.open.clear()
    threads = device_threads()
    node.collect()
    for _ in range(3):
        assert not node.release()
        assert set(only_down(node.collect()).values()) == {"released"}
        node.resume()
        frame = node.collect()
        assert only_down(frame) == {1: "hung"}
    assert device_threads() == threads
    gate.open.set()
    end = time.monotonic() + 10
    while only_down(frame := node.collect()):
        assert time.monotonic() < end
    assert gate.readings == 3  # the one that hung was of an earlier opening and told nobody


def test_what_features_hold_is_freed_before_the_library_is_shut(node: Collector, gate: Gate) -> None:
    assert node.release()
    assert gate.closed == 4


def _idle(node: Collector) -> bool:
    return not any(seat.busy for seat in node._seats.values())


def _until(good: object) -> None:
    end = time.monotonic() + 10
    while not good():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)
