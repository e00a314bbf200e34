"""Runs on a Dask cluster, by joblib: its workers read the trace for themselves, under the path that it has here."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from gpuwatch.errors import GpuwatchError, MissingExtraError, SourceError
from gpuwatch.experiment.task import Task
from gpuwatch.experiment.workers import Done, in_parallel, joblib_or_error

_ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx|ucxx)://)?(\[[0-9A-Fa-f:.]+(%\w+)?\]|[^\s:/\[\]]+):[0-9]{1,5}")
_CONNECT_SECONDS, _WORKER_SECONDS = 5.0, 15.0


def run_dask(tasks: Sequence[Task], scheduler: str) -> Generator[Done]:
    """On the workers of the Dask cluster at `scheduler`. SourceError when it does not answer or has none."""
    if not tasks:
        return
    with _client(scheduler) as client:
        with joblib_or_error().parallel_config(_dask_backend(client)):
            pool = joblib_or_error().Parallel(return_as="generator_unordered", batch_size=1)
        try:
            yield from in_parallel(pool, tasks)
        except ImportError as err:
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


def _check(scheduler: str) -> None:
    """A client that cannot make sense of its address is not closed cleanly, and says so for itself at the end."""
    if not _ADDRESS.fullmatch(scheduler):
        raise SourceError(
            f"no Dask scheduler answers at {scheduler}: it is no address",
            tried="reading it as SCHEME://HOST:PORT or HOST:PORT",
            todo="give the address that the scheduler prints, for example tcp://127.0.0.1:8786",
            code="unreachable",
        )


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        import distributed
    except ModuleNotFoundError as err:
        raise MissingExtraError(
            "--backend dask needs dask.distributed", todo="pip install 'gpuwatch-stack[dask]'"
        ) from err
    _check(scheduler)
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
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError as err:
            raise SourceError(
                f"the Dask scheduler at {scheduler} has no worker",
                tried=f"waiting {_WORKER_SECONDS:g} s for one",
                todo=f"start one where the trace's folder can be read: dask worker {scheduler}",
                code="unreachable",
            ) from err
        yield client


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
