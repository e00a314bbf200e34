"""Runs on a real Dask cluster of worker processes on loopback: what comes out, and every way in which it may fail."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.__main__ import main
from gpuwatch.errors import GpuwatchError, InputError, SourceError
from gpuwatch.experiment import dask_cluster, workers
from gpuwatch.experiment.dask_cluster import run_dask
from gpuwatch.experiment.experiment import run_tasks
from gpuwatch.experiment.task import Task, run_task
from gpuwatch.experiment.workers import Done, run_local
from tests.experiment.small_trace import NOT_COMPILED, small_tasks, small_trace
from tests.experiment.test_task import without_time
from tests.processes import python
from tests.servers import free_port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "_WORKER_SECONDS", 0.5)


ADDRESSES = ("tcp://127.0.0.1:{port}", "localhost", "127.0.0.1:{port}", "nonsense://x", "tcp://", "::::")
ASK = """
from gpuwatch.errors import SourceError
from gpuwatch.experiment import dask_cluster
dask_cluster._CONNECT_SECONDS = 0.5
for address in {addresses!r}:
    try:
        list(dask_cluster.run_dask(["never run"], address))
    except SourceError as err:
        print(err.code, len(err.lines()), sum("\\n" in line for line in err.lines()), address in err.what)
"""


def test_a_scheduler_that_does_not_answer_is_told_within_seconds() -> None:
    # In a process of its own: a client that could not connect leaves its loop behind.
    addresses = [address.format(port=free_port()) for address in ADDRESSES]
    done = python(ASK.format(addresses=addresses))
    assert done.stdout.splitlines() == ["unreachable 3 0 True"] * len(addresses)
    assert (done.returncode, done.stderr) == (0, "")  # nor does the library complain at the end


@contextlib.contextmanager
def started(count: int) -> Iterator[str]:
    """Real worker processes on loopback; the scheduler's address."""
    import distributed

    with pytest.MonkeyPatch.context() as patched:
        for name, value in NOT_COMPILED.items():
            patched.setenv(name, value)  # before its workers start
        with distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
        ) as made:
            yield made.scheduler_address


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with started(2) as address:
        yield address


@pytest.mark.server
def test_a_dask_cluster_gives_what_this_process_gives(tmp_path: Path, cluster: str) -> None:
    tasks = small_tasks(tmp_path, workloads=("default", "other"))
    plain = [without_time(run) for run in run_tasks(tasks, partial(run_local, jobs=1))]
    there = run_tasks(tasks, partial(run_dask, scheduler=cluster))
    assert [without_time(run) for run in there] == plain


@pytest.mark.server
def test_a_fault_on_a_dask_worker_is_told_as_it_is_here(tmp_path: Path, cluster: str) -> None:
    tasks = small_tasks(tmp_path, policies=("best_fit", "lucky"))
    with pytest.raises(GpuwatchError, match="lucky"):
        run_tasks(tasks, partial(run_dask, scheduler=cluster))


def dies_of_seed_43(at: int, task: Task) -> Done:
    if task.seed == 43:
        os._exit(3)
    return at, run_task(task)


@pytest.mark.server
def test_a_run_that_takes_its_dask_worker_down_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_numbered", dies_of_seed_43)
    with started(1) as address, pytest.raises(GpuwatchError, match="gave up on a run") as caught:
        run_tasks(small_tasks(tmp_path), partial(run_dask, scheduler=address))
    assert "KilledWorker" in caught.value.tried


def needs_what_is_not_there(at: int, task: Task) -> Done:
    raise ModuleNotFoundError(f"No module named 'gpuwatch{at}'")


@pytest.mark.server
def test_workers_without_the_program_are_told(tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_numbered", needs_what_is_not_there)
    with pytest.raises(GpuwatchError, match="cannot make runs: No module named 'gpuwatch"):
        run_tasks(small_tasks(tmp_path), partial(run_dask, scheduler=cluster))


@pytest.mark.server
def test_the_only_worker_reads_the_trace_itself(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "gone")  # known here, and unreadable there
    with started(1) as address, pytest.raises(InputError, match="here"):
        run_tasks(tasks, partial(run_dask, scheduler=address))


@pytest.mark.server
@pytest.mark.usefixtures("impatient")
def test_a_cluster_without_workers_is_told_within_seconds(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path)
    with started(0) as address, pytest.raises(SourceError, match="has no worker"):
        run_tasks(tasks, partial(run_dask, scheduler=address))


@pytest.mark.server
def test_the_command_on_a_dask_cluster_prints_what_it_prints_here(
    tmp_path: Path, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = small_trace(tmp_path / "trace")
    answers = []
    for how in (("--jobs", "1"), ("--backend", "dask", "--scheduler", cluster)):
        assert main(["replay", str(folder), "--policy", "fgd", "--seeds", "3", "-o", "csv", *how]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        answers.append([line.rpartition(",")[0] for line in out.splitlines()])  # the last column is the time
    assert answers[0] == answers[1]
    assert len(answers[0]) == 4


def test_nothing_to_run_connects_to_nobody() -> None:
    assert list(run_dask((), f"tcp://127.0.0.1:{free_port()}")) == []
