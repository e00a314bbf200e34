"""Several questions at once, asked so that one without an answer never holds up the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def in_parallel(work: Callable[[T], U], items: Iterable[T], workers: int, name: str = "worker") -> list[U]:
    """[work(item) for item in items], in their order, at most `workers` (>= 1) at a time; raises the first fault.

    The threads are daemons. Those of concurrent.futures are waited for at exit: a process that is asked to end would
    live on until the slowest server has answered or timed out.
    """
    todo: SimpleQueue[tuple[int, T]] = SimpleQueue()
    for numbered in enumerate(items):
        todo.put(numbered)
    done: dict[int, U] = {}
    faults: dict[int, BaseException] = {}

    def run() -> None:
        while not faults:
            try:
                position, item = todo.get_nowait()
            except Empty:
                return
            try:
                done[position] = work(item)
            except BaseException as err:  # raised where the caller waits, not lost in a thread
                faults[position] = err

    threads = [
        threading.Thread(target=run, name=f"{name}-{number}", daemon=True)
        for number in range(min(workers, todo.qsize()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[min(faults)]
    return [done[position] for position in sorted(done)]
