"""The background cycle: its pace, its failures and its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from gpuwatch_exporters.serving.cycles import Cycles, Outcome, next_due
from gpuwatch_exporters.serving.exporter import Exporter
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.errors import SourceError
from tests.servers import wait_for


class Scripted(Exporter):
    """Gives or raises one thing after the other, the last of them again and again."""

    name, help = "scripted", "Follows a script."

    def __init__(self, *script: str | Exception) -> None:
        self.script: Iterator[str | Exception] = iter(script)
        self.now: str | Exception = ""

    def cycle(self) -> str:
        self.now = next(self.script, self.now)
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


@given(
    st.floats(0, 1e6, allow_nan=False), st.floats(0, 1e5, allow_nan=False), st.floats(0.1, 1e4, allow_nan=False)
)  # fmt: skip
def test_the_next_cycle_is_on_the_grid_after_now_and_at_most_one_interval_away(
    due: float, late: float, interval: float
) -> None:
    found = next_due(due, due + late, interval)
    assert found > due
    assert due + late - 1e-6 * (due + late + 1) <= found <= due + late + interval * (1 + 1e-6) + 1e-3
    steps = (found - due) / interval
    assert abs(steps - round(steps)) < 1e-3


def test_a_failure_is_an_outcome_without_text_counted_and_logged_once_per_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    gone = SourceError("the library is gone", code="unreachable")
    slow = SourceError("took 3 s", code="timeout")
    exporter = Scripted("a 1\n", gone, gone, slow, ValueError("odd"), "a 2\n", gone)
    cycles = Cycles(exporter, 60, lambda _: None)
    outcomes = [cycles.once() for _ in range(7)]
    assert [each.text for each in outcomes] == ["a 1\n", None, None, None, None, "a 2\n", None]
    assert [each.told for each in outcomes][1:5] == [gone.what, gone.what, slow.what, "ValueError: odd"]
    assert (cycles.tally.cycles, cycles.tally.failures) == (7, 5)
    messages = [record.getMessage() for record in caplog.records]
    told = [text.partition(";")[0] for text in messages]
    assert told == [
        "cycle failed: the library is gone", "cycle failed: took 3 s", "cycle failed: ValueError: odd",
        "cycles work again", "cycle failed: the library is gone",
    ]  # fmt: skip
    # Only what nobody foresaw comes with a traceback.
    assert [bool(record.exc_info) for record in caplog.records] == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_the_time_of_the_last_success_stays_when_a_cycle_fails() -> None:
    cycles = Cycles(Scripted("a 1\n", ValueError("odd")), 60, lambda _: None)
    cycles.once()
    at = cycles.tally.last_success_at
    cycles.once()
    assert at is not None
    assert cycles.tally.last_success_at == at


def test_cycles_follow_each_other_and_one_asked_for_comes_at_once() -> None:
    outcomes: list[Outcome] = []
    cycles = Cycles(Scripted("a 1\n"), 3600, outcomes.append)
    cycles.start()
    wait_for("the first", lambda: len(outcomes) == 1, every=0.01)
    cycles.soon()
    wait_for("the one asked for", lambda: len(outcomes) == 2, seconds=5, every=0.01)
    assert cycles.stop(5)


def test_cycles_keep_their_pace_without_being_asked() -> None:
    outcomes: list[Outcome] = []
    cycles = Cycles(Scripted("a 1\n"), 0.05, outcomes.append)
    cycles.start()
    wait_for("six", lambda: len(outcomes) >= 6, seconds=5, every=0.01)
    assert cycles.stop(5)
    assert outcomes[5].ended_monotonic - outcomes[0].ended_monotonic > 0.2


def test_a_cycle_that_takes_longer_than_the_interval_is_not_run_twice_at_once() -> None:
    inside = threading.Semaphore(1)
    free: list[bool] = []

    class Slow(Exporter):
        name, help = "slow", "Is slow."

        def cycle(self) -> str:
            free.append(inside.acquire(blocking=False))
            threading.Event().wait(0.05)
            inside.release()
            return "a 1\n"

    cycles = Cycles(Slow(), 0.01, lambda _: None)
    cycles.start()
    wait_for("three", lambda: cycles.tally.cycles >= 3, every=0.01)
    assert cycles.stop(5)
    assert all(free)


def test_what_fails_while_a_page_is_put_out_ends_no_cycle() -> None:
    def broken(_: Outcome) -> None:
        raise OSError("disk full")

    cycles = Cycles(Scripted("a 1\n"), 0.01, broken)
    cycles.start()
    wait_for("two", lambda: cycles.tally.cycles >= 2, every=0.01)
    assert cycles.stop(5)


def test_a_cycle_that_hangs_is_told_and_does_not_hold_up_the_end() -> None:
    hanging = threading.Event()

    class Hangs(Exporter):
        name, help = "hangs", "Hangs."

        def cycle(self) -> str:
            hanging.wait()
            return ""

    cycles = Cycles(Hangs(), 0.1, lambda _: None)
    cycles.stale_seconds = 0.05
    cycles.start()
    wait_for("stuck", cycles.stuck, seconds=5, every=0.01)
    assert not cycles.stop(0.05)
    hanging.set()
    assert cycles.stop(5)
