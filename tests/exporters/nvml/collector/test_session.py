"""Opening the library again and again, with patience."""

from __future__ import annotations

import itertools
import threading
import time

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml import session
from gpuwatch_exporters.nvml.session import Session


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times at which the library was opened, which always fails."""
    tries: list[float] = []

    def fail(flags: int) -> None:
        tries.append(time.monotonic())
        raise nv.NVMLError(nv.NVML_ERROR_DRIVER_NOT_LOADED)

    monkeypatch.setattr(nv, "nvmlInitWithFlags", fail)
    monkeypatch.setattr(session, "FIRST_WAIT_SECONDS", 0.02)
    return tries


def test_each_wait_is_twice_the_last_up_to_the_longest(tries: list[float]) -> None:
    opened = Session(longest_wait=0.1)
    end = time.monotonic() + 5
    while len(tries) < 7:
        assert not opened.ensure(time.monotonic() + 1)
        assert time.monotonic() < end
        time.sleep(0.001)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert opened.reason == "driver_not_loaded"
    assert all(gap >= least for gap, least in zip(gaps, (0.02, 0.04, 0.08, 0.1, 0.1, 0.1), strict=True))
    assert gaps[-1] < 1  # not for ever longer
    opened.stop()


def test_flags_that_an_old_library_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[int] = []

    def old(flag: int) -> None:
        flags.append(flag)
        if flag:
            raise nv.NVMLError(nv.NVML_ERROR_INVALID_ARGUMENT)

    monkeypatch.setattr(nv, "nvmlInitWithFlags", old)
    monkeypatch.setattr(nv, "nvmlShutdown", lambda: None)
    opened = Session()
    assert opened.ensure(time.monotonic() + 5)
    assert flags == [nv.NVML_INIT_FLAG_NO_ATTACH, 0]
    assert opened.close("closed", 5)
    opened.stop()


def test_a_library_that_opens_too_late_for_a_release_is_shut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, shut = threading.Event(), []
    monkeypatch.setattr(nv, "nvmlInitWithFlags", lambda flags: gate.wait(30))
    monkeypatch.setattr(nv, "nvmlShutdown", lambda: shut.append(1))
    opened = Session()
    assert not opened.ensure(time.monotonic() + 0.05)
    assert opened.reason == "opening"
    assert not opened.close("released", 0.05)
    gate.set()
    assert opened.close("released", 5)
    assert shut == [1]
    assert opened.reason == "released"
    opened.stop()
