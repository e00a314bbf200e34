"""Work in parallel: order, the bound, and faults."""

from __future__ import annotations

import threading
import time

import pytest

from gpuwatch.sources.prometheus.parallel import in_parallel


def test_answers_come_in_the_order_of_the_questions_and_never_too_many_are_asked_at_once():
    lock, now, most = threading.Lock(), [0], [0]

    def work(item: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01 * (5 - item % 5))
        with lock:
            now[0] -= 1
        return item * item

    assert in_parallel(work, range(20), 3) == [n * n for n in range(20)]
    assert 1 < most[0] <= 3
    assert in_parallel(work, [], 3) == []


def test_the_first_fault_is_raised_and_what_was_not_begun_is_left():
    asked = []

    def work(item: int) -> int:
        asked.append(item)
        raise KeyError(item)

    with pytest.raises(KeyError):
        in_parallel(work, range(100), 2)
    assert len(asked) <= 4


def test_the_threads_do_not_outlive_the_process():
    daemons = in_parallel(lambda _: threading.current_thread().daemon, range(2), 2)
    assert daemons == [True, True]
