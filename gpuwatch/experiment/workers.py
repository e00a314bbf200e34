"""Where runs are made: in this process or in others of this machine, by joblib. (dask_cluster.py: on other machines.)

Each way gives (position in `tasks`, result) as they come, in any order; closing the iterator ends what still runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from gpuwatch.errors import GpuwatchError, MissingExtraError
from gpuwatch.experiment.task import Task, run_task

_INSTALL = "pip install 'gpuwatch-stack[replay]'"
_WATCH_SECONDS = 0.5

Done = tuple[int, Any]


def run_local(tasks: Sequence[Task], jobs: int) -> Generator[Done]:
    """At most `jobs` (1 or more) processes at once; one of them is this one, without any library."""
    if min(jobs, len(tasks)) <= 1:
        yield from ((at, run_task(task)) for at, task in enumerate(tasks))
        return
    joblib = joblib_or_error()
    begin = {"initializer": _begin, "initargs": (os.getpid(),)}
    with joblib.parallel_config("loky", n_jobs=min(jobs, len(tasks)), **begin):
        pool = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    try:
        with _Interrupts(pool) as interrupts:
            yield from in_parallel(pool, tasks, interrupts.later())
    except BrokenExecutor as err:
        raise GpuwatchError(
            "a process that ran replays was ended by somebody else",
            tried=f"{jobs} processes at once; {type(err).__name__}",
            todo="look whether memory ran out, then run it again with fewer --jobs",
            code="worker_lost",
        ) from err


def cpus() -> int:
    """CPUs that this process may use; 1 when nothing can start a second process."""
    try:
        return int(joblib_or_error().cpu_count())
    except MissingExtraError:
        return 1


def _numbered(at: int, task: Task) -> Done:
    return at, run_task(task)


def in_parallel(
    pool: Any, tasks: Sequence[Task], starting: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
) -> Generator[Done]:
    """The runs by a joblib.Parallel that gives results as they come; `starting` surrounds its start."""
    call, results = joblib_or_error().delayed(_numbered), None
    try:
        with starting:
            results = pool(call(at, task) for at, task in enumerate(tasks))
        for result in results:  # noqa: UP028  "yield from" would close them before warnings are held back
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that some results were not used is what closing means
            if results is not None:
                results.close()


class _Interrupts:
    """Ctrl-C while processes of this machine run: it reaches every process of the terminal, and this one judges it.

    A process that is caught while it starts would print a traceback of its own, so they are killed first.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._before: Any = None
        self._wait = self._came = False

    def __enter__(self) -> _Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody else judges
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """Processes that start within never see an interrupt; this one sees it at the end."""
        from multiprocessing import resource_tracker as of_python

        from joblib.externals.loky.backend import resource_tracker as of_loky  # type: ignore[import-untyped]

        for tracker in (of_loky, of_python):
            tracker.ensure_running()  # started within, it would take the block away
        self._wait = True
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._wait = False
        if self._came:
            self._interrupted()

    def _interrupted(self, *_: object) -> None:
        if self._wait:
            self._came = True
            return
        executor = getattr(self._pool._backend, "_workers", None)
        for process in list(getattr(executor, "_processes", None) or ()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        raise KeyboardInterrupt


def _begin(parent: int) -> None:
    """In a new process: interrupts are its parent's to judge, and without a parent there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def joblib_or_error() -> Any:
    """joblib, which is optional; a MissingExtraError says what installs it."""
    try:
        import joblib  # type: ignore[import-untyped]
    except ModuleNotFoundError as err:
        raise MissingExtraError("running replays in parallel needs joblib", todo=f"{_INSTALL}, or --jobs 1") from err
    return joblib
