"""A source on its own thread: never two looks at once, no wait beyond what was asked, age and reasons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from gpuwatch_exporters.holders.background import Background
from gpuwatch_exporters.holders.holding import Holding, LookError, SourceOffError, Told

from tests.servers import wait_for

A, B = Told((Holding((), "a"),)), Told((Holding((), "b"),), {"odd": 2})


class Source:
    """Answers what the test sets; `gate` not set holds answers back."""

    def __init__(self) -> None:
        self.does: Callable[[], Told] = lambda: A
        self.gate = threading.Event()
        self.gate.set()
        self.looks = 0

    def look(self, _: int) -> Told:
        self.looks += 1
        self.gate.wait(30)
        return self.does()


def made(source: Source, every: float = 5, max_age: float = 60) -> Background[int, Told]:
    return Background("test", source.look, every, max_age)


def cycle(background: Background[int, Told], now: float, wait: float = 5) -> tuple[Told | None, float | None, str]:
    background.ask(0, now)
    background.wait(time.monotonic() + wait)
    return background.latest(now)


def raising(err: Exception) -> Callable[[], Told]:
    def does() -> Told:
        raise err

    return does


def test_an_answer_within_the_cycle() -> None:
    background = made(Source())
    assert background.latest(0) == (None, None, "waiting")
    assert cycle(background, 100) == (A, 0, "")
    background.close()


def test_a_source_is_not_asked_more_often_than_told() -> None:
    source = Source()
    background = made(source)
    for now, looks, age in [(100, 1, 0), (104.9, 1, 4.9), (105, 2, 0), (109, 2, 4), (50, 3, 0)]:  # a clock set back
        result, told_age, _ = cycle(background, now)
        assert result == A
        assert told_age is not None
        assert abs(told_age - age) < 1e-6
        assert source.looks == looks
    background.close()


def test_a_failing_source_keeps_its_last_answer_until_it_is_too_old() -> None:
    source = Source()
    background = made(source)
    cycle(background, 100)
    source.does = raising(LookError("timeout"))
    assert cycle(background, 110) == (A, 10, "")
    assert cycle(background, 160) == (A, 60, "")
    assert cycle(background, 160.5) == (None, None, "timeout")
    assert background.failures() == {"timeout": 2}
    source.does = lambda: B
    assert cycle(background, 170) == (B, 0, "")
    assert background.failures() == {"timeout": 2, "odd": 2}
    background.close()


def test_a_source_that_went_holds_nothing_any_more() -> None:
    source = Source()
    background = made(source)
    cycle(background, 100)
    source.does = raising(SourceOffError("no_socket"))
    assert cycle(background, 110) == (None, None, "no_socket")
    assert background.failures() == {}
    background.close()


def test_what_somebody_should_do_is_logged_once_and_noted_until_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    background = made(source)
    source.does = raising(SourceOffError("not_installed", "install it"))
    assert [cycle(background, now) for now in (100, 110)] == [(None, None, "not_installed")] * 2
    assert [each.getMessage() for each in caplog.records] == [f"holders from {background.name}: install it"]
    assert background.note() == f"holders from {background.name}: install it"
    assert background.failures() == {}
    source.does = raising(SourceOffError("no_socket"))
    cycle(background, 120)
    assert background.note() == ""
    background.close()


def test_a_fault_of_ours_is_counted_and_the_thread_goes_on() -> None:
    source = Source()
    background = made(source)
    source.does = raising(ZeroDivisionError("?"))
    assert cycle(background, 100) == (None, None, "error")
    source.does = lambda: A
    assert cycle(background, 110) == (A, 0, "")
    assert background.failures() == {"error": 1}
    background.close()


def test_a_source_that_hangs_is_waited_for_once_and_asked_no_more() -> None:
    source = Source()
    background = made(source)
    cycle(background, 100)
    source.gate.clear()
    began = time.monotonic()
    assert cycle(background, 110, wait=0.05) == (A, 10, "")
    for now in (120, 130, 140, 150, 160):
        assert cycle(background, now) == (A, now - 100, "")  # not waited for again
    assert cycle(background, 165) == (None, None, "too_old")
    assert cycle(background, 171) == (None, None, "hung")
    assert time.monotonic() - began < 2
    assert source.looks == 2
    assert sum(thread.name == "holders-test" for thread in threading.enumerate()) == 1
    source.gate.set()
    wait_for("the late answer", lambda: background.latest(170)[0], 5, 0.01)
    assert cycle(background, 180) == (A, 0, "")
    background.close()


def test_closing_waits_for_nobody() -> None:
    source = Source()
    background = made(source)
    source.gate.clear()
    cycle(background, 0, wait=0)
    wait_for("the look", lambda: source.looks, 5, 0.01)
    began = time.monotonic()
    background.close()
    assert time.monotonic() - began < 1
    source.gate.set()
    wait_for("the thread's end", lambda: all(t.name != "holders-test" for t in threading.enumerate()), 5, 0.01)
    assert cycle(background, 100)[0] in (None, A)  # nothing begins after that
    assert source.looks == 1
