"""Tasks carry what a run needs to another process, and notice when the trace is another one there."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.errors import InputError, RegistryError
from gpuwatch.experiment import task as tasks_module
from gpuwatch.experiment.task import run_task, tasks_of, trace_digest
from gpuwatch.traces.trace_format import read_trace
from tests.experiment.small_trace import small_tasks, small_trace


def without_time(run):
    return replace(run, seconds=0.0)


def test_tasks_come_by_workload_then_policy_then_seed(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path, policies=("fgd", "best_fit"), seeds=range(7, 9), workloads=("b", "a"))
    assert [task.cell for task in tasks] == [
        (workload, policy, seed) for workload in ("b", "a") for policy in ("fgd", "best_fit") for seed in (7, 8)
    ]
    assert tasks[0].options == (("inflate", 1.3),)
    assert small_tasks(tmp_path, options={"inflate": 1.1})[0].options == (("inflate", 1.1),)
    assert len({task.digest for task in tasks}) == 2  # one for each list


def test_what_a_protocol_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="arrivals takes no speed"):
        small_tasks(tmp_path, options={"speed": 2.0})
    with pytest.raises(RegistryError, match="no replay protocol is called 'departures'"):
        tasks_of(small_trace(tmp_path), "departures", ["default"], ["fgd"], [1], {})


def test_a_task_that_travelled_gives_the_same_result(tmp_path: Path) -> None:
    task = small_tasks(tmp_path)[0]
    run = run_task(task)
    assert without_time(run_task(pickle.loads(pickle.dumps(task)))) == without_time(run)
    assert (run.policy, run.seed, run.workload, run.inflate_ratio) == ("best_fit", 42, "default", 1.3)
    assert without_time(run_task(replace(task, seed=43))).curve != run.curve


def test_a_folder_that_holds_another_trace_there_is_noticed(tmp_path: Path) -> None:
    task = small_tasks(tmp_path)[0]
    pods = tmp_path / "openb_pod_list_default.csv"
    pods.write_text(pods.read_text().replace("p001,", "p999,"))
    tasks_module._read.cache_clear()  # the worker is a process of its own
    with pytest.raises(InputError, match="does not hold the same default list everywhere") as caught:
        run_task(task)
    assert task.digest in caught.value.tried


def test_the_digest_names_content_not_place(tmp_path: Path) -> None:
    here, there = (read_trace(small_trace(tmp_path / name)) for name in ("here", "there"))
    assert trace_digest(here) == trace_digest(there)
    assert trace_digest(replace(here, jobs=here.jobs[::-1])) != trace_digest(here)
    assert trace_digest(replace(here, nodes=here.nodes[1:])) != trace_digest(here)
