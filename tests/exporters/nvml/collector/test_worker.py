"""The thread of a device, with threads and locks only: no library."""

from __future__ import annotations

import threading
import time

from gpuwatch_exporters.nvml.worker import Worker


def soon() -> float:
    return time.monotonic() + 10


def test_work_is_done_on_the_workers_own_thread() -> None:
    worker: Worker[str] = Worker("gpu-test")
    work = worker.start(lambda: threading.current_thread().name)
    assert work is not None
    assert work.wait(soon())
    assert (work.value, work.error) == ("gpu-test", None)
    assert worker.busy_seconds is None
    worker.stop()
    assert worker.join(10)


def test_while_it_hangs_it_gets_no_more_work_and_no_second_thread() -> None:
    worker: Worker[int] = Worker("gpu-hung")
    gate = threading.Event()
    hung = worker.start(lambda: gate.wait(30) and 1)
    assert hung is not None
    before = threading.active_count()
    for _ in range(100):
        assert worker.start(lambda: 2) is None
        assert not hung.wait(time.monotonic())
    assert threading.active_count() == before
    assert worker.busy_seconds is not None
    gate.set()
    assert hung.wait(soon())
    after = worker.start(lambda: 2)
    assert after is not None
    assert after.wait(soon())
    assert after.value == 2
    worker.stop()
    assert worker.join(10)


def test_an_error_is_handed_over_and_the_thread_lives_on() -> None:
    worker: Worker[float] = Worker("gpu-error")
    work = worker.start(lambda: 1 / 0)
    assert work is not None
    assert work.wait(soon())
    assert isinstance(work.error, ZeroDivisionError)
    again = worker.start(lambda: 1 / 2)
    assert again is not None
    assert again.wait(soon())
    assert again.value == 0.5
    worker.stop()


def test_a_hung_thread_does_not_keep_the_process_from_ending() -> None:
    worker: Worker[bool] = Worker("gpu-daemon")
    gate = threading.Event()
    worker.start(lambda: gate.wait(30))
    assert [each.daemon for each in threading.enumerate() if each.name == "gpu-daemon"] == [True]
    worker.stop()
    gate.set()
    assert worker.join(10)
