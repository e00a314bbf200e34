"""Every way to end: exit codes, three lines, no traceback unless asked for, and a cheap start."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch import __version__, wiring
from tests.cli.conftest import Run
from tests.processes import python

COMMANDS = ("demo", "doctor", "forecast", "fragmentation", "place", "recommend", "serve", "snapshot")
HEAVY = ("numpy", "pandas", "httpx", "fastapi", "sqlalchemy", "torch", "pydantic", "prometheus_client", "yaml")


def test_version(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"gpuwatch {__version__}\n", "")


def test_help_names_every_command_and_every_command_has_an_example(run: Run) -> None:
    text = run("--help").out
    for command in COMMANDS:
        assert command in text
        if command != "snapshot":
            assert f"Example: gpuwatch {command}" in run(command, "--help").out
    for verb in ("record", "show"):
        assert f"Example: gpuwatch snapshot {verb}" in run("snapshot", verb, "--help").out


def test_help_starts_in_under_half_a_second_of_cpu() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "gpuwatch", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "recommend" in done.stdout
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.5


def test_building_the_command_line_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gpuwatch.cli.app import build_app; build_app(); "
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    assert python(code).stdout.strip() == "[]"


def test_without_the_extra_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from gpuwatch.__main__ import main; sys.exit(main(['recommend']))"
    done = python(code)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'gpuwatch-stack[cli]'" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("frobnicate",),
        ("recommend", "--no-such-option"),
        ("recommend", "--trace", "demo", "--top", "0"),
        ("recommend", "--trace", "demo", "--top", "many"),
        ("place", "--trace", "demo"),
        ("serve",),
        ("snapshot",),
        (),
    ],
)
def test_usage_faults_exit_2_and_keep_stdout_for_data(args: tuple[str, ...], run: Run) -> None:
    ended = run(*args)
    assert ended.code == 2
    assert "Traceback" not in ended.out + ended.err
    if args not in ((), ("snapshot",)):  # these print the help that was missing
        assert ended.out == ""
        assert ended.err


def test_a_missing_snapshot_file_is_told_in_three_lines(run: Run, tmp_path: Path) -> None:
    ended = run("recommend", "--snapshot", tmp_path / "none.json")
    assert ended.code == 1
    assert ended.out == ""
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["error", "tried", "to do"]


@pytest.mark.parametrize("flags", [("-vv",), ("-v", "-v"), ("--verbose", "--verbose")])
def test_a_traceback_only_with_vv(flags: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    assert "Traceback" in run("recommend", "--snapshot", missing, *flags).err
    assert "Traceback" not in run("recommend", "--snapshot", missing, flags[0][:2] if len(flags) == 1 else flags[0]).err


def test_an_unforeseen_fault_is_told_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: object) -> None:
        raise ZeroDivisionError("nothing left")

    monkeypatch.setattr(wiring, "evaluate_once", broken)
    ended = run("fragmentation", "--trace", "demo")
    assert ended.code == 1
    assert ended.err.splitlines()[0] == "error: unexpected ZeroDivisionError: nothing left"
    assert "-vv" in ended.err


def test_an_interrupt_exits_130_without_a_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(spec: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wiring, "evaluate_once", interrupted)
    ended = run("fragmentation", "--trace", "demo")
    assert (ended.code, ended.out) == (130, "")
    assert "Traceback" not in ended.err


def test_a_reader_that_leaves_early_is_no_fault(snapshot_file: Path) -> None:
    command = [sys.executable, "-m", "gpuwatch", "snapshot", "show", str(snapshot_file), "-o", "json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) in (0, 1)


def test_an_ascii_terminal_gets_ascii(snapshot_file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwatch", "snapshot", "show", str(snapshot_file)],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert done.stdout.isascii()
    assert b"n-0999" in done.stdout
