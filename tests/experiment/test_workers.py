"""Where runs are made does not matter to what comes out; a lost process is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.errors import GpuwatchError, SettingsError
from gpuwatch.experiment.experiment import run_tasks
from gpuwatch.experiment.journal import Journal
from gpuwatch.experiment.task import Task, run_task
from gpuwatch.experiment.workers import Done, cpus, run_local
from tests.experiment.small_trace import small_tasks
from tests.experiment.test_task import without_time


def backwards(tasks: Sequence[Task]) -> Generator[Done]:
    yield from [(at, run_task(tasks[at])) for at in reversed(range(len(tasks)))]


def never(tasks: Sequence[Task]) -> Generator[Done]:
    assert not tasks
    yield from ()


def test_the_order_of_results_is_that_of_the_tasks(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path, workloads=("default", "other"))
    plain = [without_time(run) for run in run_tasks(tasks, partial(run_local, jobs=1))]
    assert [(run.workload, run.policy, run.seed) for run in plain] == [task.cell for task in tasks]
    for anyhow in (backwards, partial(run_local, jobs=2)):
        assert [without_time(run) for run in run_tasks(tasks, anyhow)] == plain


def test_known_results_are_taken_over_and_counted(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path)
    path = tmp_path / "runs.jsonl"
    with Journal(path, tasks[:2]) as journal:
        first = run_tasks(tasks[:2], backwards, journal)
    heard: list[int] = []
    with Journal(path, tasks) as journal:
        both = run_tasks(tasks, backwards, journal, heard.append)
    assert both[:2] == first  # to the second
    assert heard == [2, 3, 4, 5, 6]
    with Journal(path, tasks) as journal:
        assert run_tasks(tasks, never, journal) == both
    assert len(path.read_text().splitlines()) == len(tasks)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_fault_of_one_run_ends_the_others_and_is_told(tmp_path: Path, jobs: int) -> None:
    good = small_tasks(tmp_path, seeds=range(42, 44))
    bad = small_tasks(tmp_path, policies=("lucky",))[:1]
    with pytest.raises(GpuwatchError) as caught:
        run_tasks((*good, *bad), partial(run_local, jobs=jobs))
    assert "lucky" in caught.value.what
    assert "best_fit" in caught.value.todo
    assert isinstance(caught.value, SettingsError)


def test_a_process_that_is_killed_is_told_and_what_was_done_is_kept(tmp_path: Path) -> None:
    from joblib.externals.loky import reusable_executor

    tasks = small_tasks(tmp_path, seeds=range(400))
    path = tmp_path / "runs.jsonl"

    def kill_one(done: int) -> None:
        if done == 3:
            os.kill(next(iter(reusable_executor._executor._processes)), signal.SIGKILL)

    with Journal(path, tasks) as journal, pytest.raises(GpuwatchError, match="ended by somebody else") as caught:
        run_tasks(tasks, partial(run_local, jobs=2), journal, kill_one)
    assert caught.value.code == "worker_lost"
    assert 3 <= len(path.read_text().splitlines()) < len(tasks)


def test_nothing_to_run_starts_nothing() -> None:
    assert list(run_local((), jobs=4)) == []
    assert cpus() >= 1
