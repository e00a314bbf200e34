"""`gpuwatch replay` on a small trace: options, formats, resuming, and how it ends when somebody ends it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.placement.kernels import jit
from gpuwatch.placement.replay import field_of, replay_arrivals
from gpuwatch.traces.trace_format import read_trace
from tests.cli.conftest import Run
from tests.experiment.small_trace import NOT_COMPILED, small_trace
from tests.servers import free_port, wait_for

FEW = ("--policy", "fgd", "--policy", "best_fit", "--seeds", "2", "--jobs", "1")
MANY = ("--policy", "fgd", "--policy", "best_fit", "--seeds", "80", "--jobs", "2", "-o", "json")


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOT_COMPILED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_trace(tmp_path / "trace", ("default", "other"))


def timeless(text: str) -> Any:
    """A JSON answer without the time that runs took."""

    def strip(thing: Any) -> Any:
        if isinstance(thing, dict):
            return {key: strip(each) for key, each in thing.items() if key != "seconds"}
        return [strip(each) for each in thing] if isinstance(thing, list) else thing

    return strip(json.loads(text))


@pytest.mark.parametrize("form", ["table", "wide", "json", "jsonl", "yaml", "csv", "md", "html"])
def test_every_format(run: Run, trace: Path, form: str) -> None:
    ended = run("replay", trace, *FEW, "-o", form)
    assert (ended.code, ended.err) == (0, "")
    assert "fgd" in ended.out
    assert "\x1b" not in ended.out


def test_items_come_in_the_order_asked_for(run: Run, trace: Path) -> None:
    ended = run("replay", trace, *FEW, "--workload", "other", "--workload", "default", "--first-seed", "7", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [(row["workload"], row["policy"], row["seed"]) for row in rows] == [
        (workload, policy, seed)
        for workload in ("other", "default")
        for policy in ("fgd", "best_fit")
        for seed in ("7", "8")
    ]


def test_without_a_choice_every_policy_runs_and_all_means_every_list(run: Run, trace: Path) -> None:
    from gpuwatch.placement.policy import POLICIES

    ended = run("replay", trace, "--seeds", "1", "--jobs", "1", "--workload", "all", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert {row["policy"] for row in rows} == set(POLICIES.ids())
    assert {row["workload"] for row in rows} == {"default", "other"}


def test_the_result_does_not_depend_on_how_it_is_run(run: Run, trace: Path) -> None:
    alone = run("replay", trace, *FEW, "-o", "json")
    assert timeless(run("replay", trace, *FEW[:-1], "2", "-o", "json").out) == timeless(alone.out)
    assert timeless(run("replay", trace, *FEW, "--inflate", "1.3", "-o", "json").out) == timeless(alone.out)
    assert timeless(run("replay", trace, *FEW, "--inflate", "1.1", "-o", "json").out) != timeless(alone.out)


def test_without_numba_it_runs_the_same_and_says_why_it_is_slow(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = run("replay", trace, *FEW, "-o", "json")
    monkeypatch.setattr(jit, "lacking", lambda: "numba is not installed")
    plain = run("replay", trace, *FEW, "-o", "json")
    assert plain.err.startswith("note: numba is not installed")
    assert timeless(plain.out) == timeless(fast.out)


def test_a_numba_that_does_not_load_is_as_good_as_none(
    run: Run, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs an older NumPy')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(jit, "lacking", jit.lacking.__wrapped__)  # what is known of the real one stays known
    ended = run("replay", trace, *FEW)
    assert ended.code == 0
    assert ended.err.startswith("note: numba does not load (Numba needs an older NumPy), so runs are slow")


def test_the_largest_seed_runs_in_every_form(trace: Path) -> None:
    field = field_of(read_trace(trace, "default"))
    plain, scalar = (
        replay_arrivals(field, "random", seed=2**32 - 1 + 100_000, inflate=1.3, compiled=compiled)
        for compiled in (False, True)
    )
    assert replace(plain, seconds=0.0) == replace(scalar, seconds=0.0)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--policy", "lucky"), "best_fit"),
        (("--workload", "cpu999"), "default, other, all"),
        (("--protocol", "departures"), "arrivals"),
        (("--backend", "threads"), "local, dask"),
        (("--backend", "dask"), "needs --scheduler"),
        (("--scheduler", "tcp://127.0.0.1:1"), "does nothing with --backend local"),
        (("--backend", "dask", "--scheduler", "x", "--jobs", "2"), "--jobs does nothing with --backend dask"),
        (("--seeds", "0"), "--seeds"),
        (("--seeds", "1000000"), "--seeds"),
        (("--first-seed", "4294967296"), "--first-seed"),
        (("--jobs", "0"), "--jobs"),
        (("--inflate", "-1"), "--inflate"),
        (("--inflate", "nan"), "inflate"),
        (("-o", "pdf"), "csv"),
        (("--resume", "same", "--output-file", "same"), "name one file"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(
    run: Run, trace: Path, args: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("replay", trace, *args)
    assert ended.code == 2
    assert ended.out == ""
    assert told in ended.err
    assert not (tmp_path / "same").exists()


def test_a_folder_that_is_not_there_is_told_before_anything_runs(run: Run, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    ended = run("replay", trace, *FEW, "--resume", path, "--output-file", tmp_path / "absent" / "out.json")
    assert (ended.code, ended.out) == (1, "")
    assert "there is no such folder" in ended.err
    assert not path.exists()


def test_a_trace_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    ended = run("replay", tmp_path / "nowhere")
    assert ended.code == 1
    assert "there is no trace" in ended.err
    assert "--trace" not in ended.err  # here the trace is no option
    (tmp_path / "empty").mkdir()
    ended = run("replay", tmp_path / "empty")
    assert ended.code == 1
    assert "no folder of a known trace" in ended.err


def test_a_scheduler_that_is_not_there_is_told_in_three_lines(trace: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    ended = started(trace, "--policy", "fgd", "--backend", "dask", "--scheduler", address)
    out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out) == (1, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "tried", "to do"]
    assert address in err


@pytest.mark.parametrize(("options", "shown"), [((), True), (("--no-progress",), False), (("-q",), False)])
def test_progress_shows_on_a_terminal_only(trace: Path, options: tuple[str, ...], shown: bool) -> None:
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "gpuwatch", "replay", str(trace), *FEW, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer) as process:
        os.close(writer)
        said = b""
        with contextlib.suppress(OSError):  # Linux says so when the last writer has gone
            while part := os.read(reader, 65536):
                said += part
        os.close(reader)
        assert process.stdout is not None
        assert b"fgd" in process.stdout.read()
    assert process.returncode == 0
    assert (b"replaying" in said) is shown


# -- going on later ---------------------------------------------------------------------------------------------------


def started(trace: Path, *args: object) -> subprocess.Popen[str]:
    """In a session of its own, as a shell starts it: a signal to the group reaches its workers too."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwatch", "replay", str(trace), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kept(path: Path) -> int:
    return path.read_bytes().count(b"\n")


@pytest.fixture
def whole(run: Run, trace: Path) -> Iterator[Any]:
    ended = run("replay", trace, *MANY)
    assert ended.code == 0
    return timeless(ended.out)


def test_resume_runs_nothing_twice_and_gives_the_same_bytes(run: Run, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    first = run("replay", trace, *FEW, "--resume", path, "-o", "json")
    written = path.read_bytes()
    again = run("replay", trace, *FEW, "--resume", path, "-o", "json")
    assert again.out == first.out  # to the second: nothing was run
    assert path.read_bytes() == written
    assert run("replay", trace, *FEW, "--seeds", "3", "--resume", path).code == 0
    assert kept(path) == 6


def test_a_foreign_file_is_refused_and_left_as_it_is(run: Run, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("keep me\n")
    ended = run("replay", trace, *FEW, "--resume", path)
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 3
    assert path.read_text() == "keep me\n"
    run("replay", trace, *FEW, "--resume", tmp_path / "runs.jsonl")
    ended = run("replay", trace, *FEW, "--inflate", "1.2", "--resume", tmp_path / "runs.jsonl")
    assert ended.code == 1
    assert "holds another experiment" in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_it_goes_on_from_there(
    run: Run, trace: Path, tmp_path: Path, whole: Any, number: signal.Signals
) -> None:
    path = tmp_path / "runs.jsonl"
    process = started(trace, *MANY, "--resume", path)
    wait_for("some results", lambda: kept(path) >= 3, every=0.005)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # Ctrl-C reaches everybody on the terminal
    else:
        process.kill()
    out, err = process.communicate(timeout=60)
    assert out == ""
    so_far = kept(path)
    assert 3 <= so_far < 160
    if number is signal.SIGINT:
        assert process.returncode == 130
        assert err == f"note: {so_far} of 160 runs are kept in {path}; the same command goes on from there\n"
    with path.open("ab") as file:
        file.write(b'{"schema": "gpuwatch.replay-run/1", "rel')  # as if the end had come within a line
    ended = run("replay", trace, *MANY, "--resume", path)
    assert ended.code == 0
    assert timeless(ended.out) == whole
    assert kept(path) == 160


def test_interrupted_without_a_file_it_says_what_is_lost(trace: Path) -> None:
    process = started(trace, "--policy", "fgd", "--seeds", "2000", "--jobs", "2", "--workload", "all")
    # Workers exist once runs are made; the parent alone would be at reading the trace.
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for("workers", lambda: len(children.read_text().split()) >= 3, every=0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1
