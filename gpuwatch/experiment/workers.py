"""Where runs are made: in this process, in processes of this machine, or on a Dask cluster; the last two by joblib.

Each gives (position in `tasks`, result) as they come, in any order; closing the iterator ends what still runs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any

from gpuwatch.errors import GpuwatchError, MissingExtraError, SourceError
from gpuwatch.experiment.task import Task, run_task

_INSTALL = "pip install 'gpuwatch-stack[replay]'"
_CONNECT_SECONDS = 5.0
_WATCH_SECONDS = 0.5

Done = tuple[int, Any]


def run_local(tasks: Sequence[Task], jobs: int) -> Generator[Done]:
    """At most `jobs` (1 or more) processes at once; one of them is this one, without any library."""
    if min(jobs, len(tasks)) <= 1:
        yield from ((at, run_task(task)) for at, task in enumerate(tasks))
        return
    joblib = _joblib()
    begin = {"initializer": _begin, "initargs": (os.getpid(),)}
    with joblib.parallel_config("loky", n_jobs=min(jobs, len(tasks)), **begin):
        pool = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    try:
        yield from _started(pool, tasks)
    except BrokenExecutor as err:
        raise GpuwatchError(
            "a process that ran replays was ended by somebody else",
            tried=f"{jobs} processes at once; {type(err).__name__}",
            todo="look whether memory ran out, then run it again with fewer --jobs",
            code="worker_lost",
        ) from err


def run_dask(tasks: Sequence[Task], scheduler: str) -> Generator[Done]:
    """On the workers of the Dask cluster at `scheduler`. SourceError when it does not answer or has none."""
    if not tasks:
        return
    with _client(scheduler) as client:
        with _joblib().parallel_config(_dask_backend(client)):
            pool = _joblib().Parallel(return_as="generator_unordered", batch_size=1)
        try:
            yield from _started(pool, tasks)
        except ModuleNotFoundError as err:
            raise GpuwatchError(
                f"the workers of {scheduler} cannot make runs: {err}",
                todo="install there what is installed here: pip install 'gpuwatch-stack[replay]'",
                code="worker_lacks",
            ) from err
        except _lost() as err:
            raise GpuwatchError(
                "the Dask cluster gave up on a run, or went away",
                tried=f"{scheduler}; {type(err).__name__}",
                todo="look at its workers (memory, time limits), then run it again",
                code="worker_lost",
            ) from err


def cpus() -> int:
    """CPUs that this process may use; 1 when nothing can start a second process."""
    try:
        return int(_joblib().cpu_count())
    except MissingExtraError:
        return 1


def _numbered(at: int, task: Task) -> Done:
    return at, run_task(task)


def _started(pool: Any, tasks: Sequence[Task]) -> Generator[Done]:
    call, results = _joblib().delayed(_numbered), None
    try:
        with _interrupts_later():
            results = pool(call(at, task) for at, task in enumerate(tasks))
        yield from results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that some results were not used is what closing means
            if results is not None:
                results.close()


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C reaches every process of the terminal: those that start within never see it, this one after the block."""
    from multiprocessing import resource_tracker as of_python

    from joblib.externals.loky.backend import resource_tracker as of_loky  # type: ignore[import-untyped]

    for tracker in (of_loky, of_python):
        tracker.ensure_running()  # started within, it would take the block away
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """In a new process: interrupts are its parent's to judge, and without a parent there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dask_backend(client: Any) -> Any:
    """joblib's own backend, made to tell also that a run got lost with its worker: it would be waited for for ever."""
    from joblib._dask import DaskDistributedBackend  # type: ignore[import-untyped]

    class Telling(DaskDistributedBackend):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int = 1) -> int:
            # Were it 1, the runs would be made here, one after the other, and not on the cluster's only worker.
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return future

    return Telling(client=client)


def _hush(library: str) -> None:
    """A lost connection is told once, by us; the library's own words are for -v, like ours."""
    if logging.getLogger("gpuwatch").isEnabledFor(logging.ERROR):
        return
    for name in list(logging.Logger.manager.loggerDict):
        if name.split(".")[0] == library:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _lost() -> tuple[type[BaseException], ...]:
    from distributed.scheduler import KilledWorker

    return KilledWorker, CancelledError


def _joblib() -> Any:
    try:
        import joblib  # type: ignore[import-untyped]
    except ModuleNotFoundError as err:
        raise MissingExtraError("running replays in parallel needs joblib", todo=f"{_INSTALL}, or --jobs 1") from err
    return joblib


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        import distributed
    except ModuleNotFoundError as err:
        raise MissingExtraError(
            "--backend dask needs dask.distributed", todo="pip install 'gpuwatch-stack[dask]'"
        ) from err
    _hush("distributed")
    connect: Any = distributed.Client
    try:
        client = connect(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as err:
        raise SourceError(
            f"no Dask scheduler answers at {scheduler}: {err}",
            tried=f"connecting for {_CONNECT_SECONDS:g} s",
            todo="start one (dask scheduler), or check the address, for example tcp://127.0.0.1:8786",
            code="unreachable",
        ) from err
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError as err:
            raise SourceError(
                f"the Dask scheduler at {scheduler} has no worker",
                tried=f"waiting {_CONNECT_SECONDS:g} s for one",
                todo=f"start one where the trace's folder can be read: dask worker {scheduler}",
                code="unreachable",
            ) from err
        yield client
