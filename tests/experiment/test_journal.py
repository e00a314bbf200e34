"""The file of results: what belongs is read back, what was torn is dropped, what is foreign is refused and kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.errors import InputError
from gpuwatch.experiment import journal as journal_module
from gpuwatch.experiment.journal import SCHEMA, Journal
from gpuwatch.experiment.task import Task, run_task
from tests.experiment.small_trace import small_tasks


def filled(path: Path, tasks: tuple[Task, ...]) -> dict:
    with Journal(path, tasks) as journal:
        for task in tasks:
            journal.add(task, run_task(task))
        return dict(journal.known)


def known(path: Path, tasks: tuple[Task, ...]) -> dict:
    with Journal(path, tasks) as journal:
        return journal.known


def test_results_are_read_back_equal(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path)
    path = tmp_path / "runs.jsonl"
    written = filled(path, tasks)
    assert known(path, tasks) == written
    assert written.keys() == {task.cell for task in tasks}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(line["workload"], line["policy"], line["seed"]) for line in lines} == written.keys()
    assert {line["schema"] for line in lines} == {SCHEMA}


def test_every_result_is_in_the_file_before_the_next_begins(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    with Journal(path, tasks) as journal:
        for count, task in enumerate(tasks, start=1):
            journal.add(task, run_task(task))
            assert len(path.read_text().splitlines()) == count


def test_one_file_serves_a_growing_experiment(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    few = small_tasks(tmp_path, policies=("fgd",), seeds=range(42, 44))
    filled(path, few)
    many = small_tasks(tmp_path, policies=("fgd", "best_fit"), seeds=range(42, 46), workloads=("default", "other"))
    assert known(path, many).keys() == {task.cell for task in few}
    assert known(path, small_tasks(tmp_path, policies=("best_fit",))) == {}
    filled(path, many)
    assert known(path, few).keys() == {task.cell for task in few}


@pytest.mark.parametrize("cut", [1, 40, 700, -1, -2])
def test_a_torn_last_line_is_dropped_and_the_file_is_whole_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    written = filled(path, tasks)
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:cut])
    torn = path.read_bytes()
    with Journal(path, tasks) as journal:
        assert journal.known.keys() == {task.cell for task in tasks[:-1]}
        assert path.read_bytes() == torn  # reading changes nothing
        journal.add(tasks[-1], written[tasks[-1].cell])
    assert path.read_bytes() == b"".join(whole) + last


def test_wherever_the_writer_was_killed_whole_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path, seeds=range(42, 44))
    filled(path, tasks)
    whole = path.read_bytes()
    for cut in (*range(0, len(whole), 997), *range(120)):
        path.write_bytes(whole[:cut])
        assert known(path, tasks).keys() == {task.cell for task in tasks[: whole[:cut].count(b"\n")]}


def test_a_file_of_one_torn_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path, seeds=range(42, 43))
    filled(path, tasks)
    whole = path.read_bytes()
    for part in (b"", whole[:10], whole[:200]):
        path.write_bytes(part)
        filled(path, tasks)
        assert known(path, tasks).keys() == {task.cell for task in tasks}


GARBAGE = {
    "prose": b"dear diary",
    "prose with an end": b"dear diary\n",
    "an empty line": b"\n",
    "a list": b"[1, 2]\n",
    "a number": b"17\n",
    "another document": b'{"schema": "gpuwatch.snapshot/1"}\n',
    "a later format": b'{"schema": "gpuwatch.replay-run/2", "run": {}}\n',
    "no run": b'{"schema": "gpuwatch.replay-run/1"}\n',
    "bytes": b"\xff\xfe\x00\n\x80",
    "nested too deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("after_good_lines", [False, True])
def test_garbage_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, after_good_lines: bool) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    if after_good_lines:
        filled(path, tasks[:2])
    before = path.read_bytes() if after_good_lines else b""
    path.write_bytes(before + content)
    with pytest.raises(InputError) as caught:
        known(path, tasks)
    assert str(path) in caught.value.what
    assert f"line {1 + 2 * after_good_lines}" in caught.value.what
    assert caught.value.todo
    assert path.read_bytes() == before + content


def edited(change: Callable[[dict], None]) -> Callable[[bytes], bytes]:
    def edit(line: bytes) -> bytes:
        document = json.loads(line)
        change(document)
        return json.dumps(document).encode() + b"\n"

    return edit


ANOTHER = {
    "options": (lambda d: d["options"].update(inflate=1.1), "options is {inflate: 1.1}"),
    "trace": (lambda d: d.update(trace="0123"), "trace is 0123"),
    "release": (lambda d: d.update(release="0.0.0"), "release is 0.0.0"),
    "protocol": (lambda d: d.update(protocol="departures"), "protocol is departures"),
    "none": (lambda d: d.pop("release"), "release is null"),
}


@pytest.mark.parametrize(("change", "told"), ANOTHER.values(), ids=ANOTHER)
def test_another_experiment_is_refused_and_left_as_it_is(
    tmp_path: Path, change: Callable[[dict], None], told: str
) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    filled(path, tasks[:1])
    before = edited(change)(path.read_bytes())
    path.write_bytes(before)
    with pytest.raises(InputError) as caught:
        known(path, tasks)
    assert "holds another experiment" in caught.value.what
    assert told in caught.value.what
    assert path.read_bytes() == before


FAULTS = {
    "a number as text": lambda d: d["run"].update(arrivals="70"),
    "a missing field": lambda d: d["run"].pop("curve"),
    "a field too many": lambda d: d["run"].update(mood="good"),
    "no number": lambda d: d["run"].update(seconds=None),
    "no run": lambda d: d.pop("run"),
}


@pytest.mark.parametrize("change", FAULTS.values(), ids=FAULTS)
def test_a_result_that_cannot_be_one_is_refused(tmp_path: Path, change: Callable[[dict], None]) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    filled(path, tasks[:1])
    path.write_bytes(edited(change)(path.read_bytes()))
    with pytest.raises(InputError, match="line 1 is none"):
        known(path, tasks)


def test_two_writers_cannot_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    tasks = small_tasks(tmp_path)
    with Journal(path, tasks), pytest.raises(InputError, match="another replay writes"):
        known(path, tasks)
    assert known(path, tasks) == {}


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, tmp_path / "absent" / "runs.jsonl", Path("/dev/null")):
        with pytest.raises(InputError) as caught:
            known(path, tasks)
        assert str(path) in caught.value.what
        assert caught.value.todo


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        known(Path("/proc/self/mem"), small_tasks(tmp_path))  # a plain file that gives an I/O error


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = small_tasks(tmp_path)
    result = run_task(tasks[0])
    with Journal(tmp_path / "runs.jsonl", tasks) as journal, open("/dev/full", "r+b", buffering=0) as full:
        monkeypatch.setattr(journal, "_file", full)
        with pytest.raises(InputError, match="cannot write"):
            journal.add(tasks[0], result)
        monkeypatch.undo()


def test_the_release_is_part_of_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = small_tasks(tmp_path)
    filled(tmp_path / "runs.jsonl", tasks[:1])
    monkeypatch.setattr(journal_module, "__version__", "99.0")
    with pytest.raises(InputError, match="holds another experiment: release"):
        known(tmp_path / "runs.jsonl", tasks)
