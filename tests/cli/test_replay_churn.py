"""`gpuwatch replay --protocol churn` on a small trace: options, formats, resuming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.experiment.small_trace import NOT_COMPILED, small_trace

FEW = (
    "--protocol",
    "churn",
    "--policy",
    "fgd",
    "--policy",
    "best_fit",
    "--seeds",
    "2",
    "--jobs",
    "1",
    "--turnovers",
    "2",
)


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOT_COMPILED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_trace(tmp_path / "trace")


@pytest.mark.parametrize("form", ["table", "wide", "json", "jsonl", "yaml", "csv", "md", "html"])
def test_every_format(run: Run, trace: Path, form: str) -> None:
    ended = run("replay", trace, *FEW, "-o", form)
    assert (ended.code, ended.err) == (0, "")
    assert "fgd" in ended.out
    assert "\x1b" not in ended.out


def test_the_options_reach_the_runs(run: Run, trace: Path) -> None:
    given = {
        "load": (1.3, 1.3),
        "median-seconds": (60, 60.0),
        "sigma": (0.5, 0.5),
        "warm-up": (0.5, 0.5),
        "queue": ("fifo", "fifo"),
        "depth": (5, 5),
        "preemption": ("on", True),
        "priorities": ("on", True),
        "checkpoint-seconds": (30, 30.0),
        "gang-fraction": (0.5, 0.5),
        "gang-members": (3, 3),
        "times": ("drawn", "drawn"),
    }
    words = [word for name, (text, _) in given.items() for word in (f"--{name}", text)]
    told = json.loads(run("replay", trace, *FEW, *words, "-o", "json").out)
    assert told["protocol"] == "churn"
    assert told["settings"] == {name.replace("-", "_"): kept for name, (_, kept) in given.items()} | {"turnovers": 2.0}
    gangs = next(size for size in told["items"][0]["sizes"] if size["size"] == "gang")
    assert gangs["arrived"] > 0
    assert told["items"][0]["warm_up_seconds"] == pytest.approx(told["items"][0]["span_seconds"] / 2)


def test_what_is_kept_is_not_run_again_and_says_the_same(run: Run, trace: Path, tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    first = run("replay", trace, *FEW, "--resume", kept, "-o", "json")
    lines = kept.read_bytes()
    again = run("replay", trace, *FEW, "--resume", kept, "-o", "json")
    assert again.out == first.out  # to the byte: also the seconds are those of the first time
    assert kept.read_bytes() == lines
    other = run("replay", trace, *FEW, "--load", "0.5", "--resume", kept)
    assert other.code == 1
    assert "another experiment" in other.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--inflate", "1.2"), "--inflate does nothing with --protocol churn"),
        (("--times", "guessed"), "--times cannot be 'guessed'"),
        (("--preemption", "maybe"), "--preemption cannot be 'maybe'"),
        (("--preemption", "on", "--priorities", "off"), "preemption needs priorities"),
        (("--times", "trace"), "turnovers does nothing with arrivals taken from the trace"),
        (("--load", "0"), "load is 0, outside"),
        (("--sigma", "nan"), "sigma is nan, outside"),
    ],
)
def test_options_that_nothing_could_honor_are_refused(run: Run, trace: Path, words: tuple[str, ...], said: str) -> None:
    ended = run("replay", trace, *FEW, *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_options_of_churn_do_not_pass_for_the_other_protocol(run: Run, trace: Path) -> None:
    ended = run("replay", trace, "--queue", "fifo", "--seeds", "1", "--jobs", "1")
    assert ended.code == 2
    assert "--queue does nothing with --protocol arrivals" in ended.err


def test_a_list_without_times_says_what_to_do(run: Run, trace: Path) -> None:
    ended = run("replay", trace, *FEW[:-2], "--times", "durations")
    assert (ended.code, ended.out) == (1, "")
    assert "does not tell how long a job ran" in ended.err
    assert "--times drawn" in ended.err
