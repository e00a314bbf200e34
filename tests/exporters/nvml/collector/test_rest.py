from __future__ import annotations

import itertools

from gpuwatch_exporters.node.pci import Slot
from gpuwatch_exporters.nvml.rest import IDLE_SECONDS, LONGEST_IDLE_SECONDS, REST_SECONDS, Rest

A = "0000:01:00.0"
AWAKE, ASLEEP = Slot(A, "nvidia", "active", True), Slot(A, "nvidia", "suspended", True)


def test_an_idle_gpu_that_may_sleep_is_left_alone() -> None:
    rest = Rest()
    assert rest.look([AWAKE], now=0) == frozenset()
    assert not rest.used(A, in_use=False, now=IDLE_SECONDS - 1)
    assert rest.used(A, in_use=False, now=IDLE_SECONDS)
    assert rest.look([AWAKE], now=IDLE_SECONDS + 10) == {A}


def test_use_starts_the_time_anew() -> None:
    rest = Rest()
    rest.look([AWAKE], now=0)
    assert not rest.used(A, in_use=True, now=50)
    assert not rest.used(A, in_use=False, now=50 + IDLE_SECONDS - 1)
    assert rest.used(A, in_use=False, now=50 + IDLE_SECONDS)


def test_a_gpu_that_may_not_sleep_is_always_read() -> None:
    rest = Rest()
    server = Slot(A, "nvidia", "active", False)
    for now in range(0, 100_000, 1000):
        assert rest.look([server], now=now) == frozenset()
        assert not rest.used(A, in_use=False, now=now)


def test_one_that_fell_asleep_is_read_as_soon_as_it_wakes() -> None:
    rest = Rest()
    rest.look([AWAKE], now=0)
    assert rest.used(A, in_use=False, now=IDLE_SECONDS)
    rest.look([ASLEEP], now=IDLE_SECONDS + 10)
    assert rest.look([AWAKE], now=IDLE_SECONDS + 20) == frozenset()
    assert rest.used(A, in_use=False, now=2 * IDLE_SECONDS + 20)  # as soon as the first time


def test_one_that_does_not_fall_asleep_is_left_alone_ever_more_seldom() -> None:
    rest, now, read, rests = Rest(), 0.0, 0, []
    while now < 20 * LONGEST_IDLE_SECONDS:
        if A not in rest.look([AWAKE], now):
            read += 1
            if rest.used(A, in_use=False, now=now):
                rests.append(now)
        now += 10
    gaps = [later - earlier for earlier, later in itertools.pairwise(rests)]
    assert gaps == sorted(gaps)
    assert max(gaps) <= LONGEST_IDLE_SECONDS + REST_SECONDS + 10
    assert read * 10 > 0.95 * now


def test_a_gpu_that_left_the_bus_is_forgotten() -> None:
    rest = Rest()
    rest.look([AWAKE], now=0)
    assert rest.used(A, in_use=False, now=IDLE_SECONDS)
    assert rest.look([], now=IDLE_SECONDS + 1) == frozenset()
    assert rest.look([AWAKE], now=IDLE_SECONDS + 2) == frozenset()
