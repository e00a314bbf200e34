"""Exactly one input, found where it was said, and a word about every place tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.cli.exits import UsageError
from gpuwatch.cli.inputs import Chosen, choose, input_spec, trace_folder
from gpuwatch.cli.options import InputOptions
from gpuwatch.config import InputSpec
from gpuwatch.errors import InputError
from tests.cli.conftest import Run, Wired


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPUWATCH_SERVER", "GPUWATCH_CONFIG", "GPUWATCH_TRACES"):
        monkeypatch.delenv(name, raising=False)


def test_no_input_names_every_place_tried(run: Run) -> None:
    ended = run("recommend")
    assert ended.code == 2
    for place in ("--snapshot", "--server", "--config", "--trace", "$GPUWATCH_SERVER", "$GPUWATCH_CONFIG"):
        assert place in ended.err
    assert len(ended.err.splitlines()) == 3


def test_two_inputs_are_one_too_many(run: Run, wired: Wired) -> None:
    ended = run("recommend", "--trace", "demo", "--snapshot", "x.json")
    assert ended.code == 2
    assert "--snapshot and --trace were given together" in ended.err
    assert wired.specs == []


def test_the_environment_is_asked_only_when_no_option_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_SERVER", "http://h:1")
    assert choose(InputOptions()) == Chosen("server", "http://h:1")
    assert choose(InputOptions(trace="demo")) == Chosen("trace", "demo")
    monkeypatch.setenv("GPUWATCH_CONFIG", "c.toml")
    with pytest.raises(UsageError, match="both set"):
        choose(InputOptions())


def test_a_trace_by_folder_by_name_and_by_the_word_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openb").mkdir()
    assert trace_folder(str(tmp_path)) == tmp_path
    with pytest.raises(InputError) as err:
        trace_folder("openb")
    assert "GPUWATCH_TRACES is not set" in err.value.tried
    monkeypatch.setenv("GPUWATCH_TRACES", str(tmp_path))
    options = InputOptions(load=0.5, workload="cpu200", seed=3)
    assert input_spec(Chosen("trace", "openb"), options) == InputSpec(
        kind="trace", path=str(tmp_path / "openb"), workload="cpu200", load_ratio=0.5, seed=3
    )
    assert input_spec(Chosen("trace", "demo"), InputOptions(seed=9)) == InputSpec(kind="generated", seed=9)
    with pytest.raises(InputError) as err:
        trace_folder("nowhere")
    assert str(tmp_path / "nowhere") in err.value.tried


@pytest.mark.parametrize(
    "args",
    [
        ("--snapshot", "x.json", "--load", "0.5"),
        ("--snapshot", "x.json", "--token-file", "t"),
        ("--config", "c.toml", "--workload", "cpu200"),
        ("--config", "c.toml", "--timeout", "3"),
        ("--server", "http://h", "--seed", "3"),
        ("--trace", "demo", "--load", "0.5"),
        ("--trace", "demo", "--load-policy", "fgd"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(args: tuple[str, ...], run: Run, wired: Wired) -> None:
    ended = run("recommend", *args)
    assert (ended.code, ended.out) == (2, "")
    assert f"{args[2]} does nothing with {args[0]}" in ended.err
    assert wired.specs == []


@pytest.mark.parametrize(
    "args",
    [("-o", "json"), ("--strict",), ("--output-file", "x"), ("--once", "--load", "0.5"), ("--once", "--port", "1")],
)
def test_the_demo_refuses_what_it_would_ignore(args: tuple[str, ...], run: Run, wired: Wired) -> None:
    ended = run("demo", *args)
    assert (ended.code, ended.out) == (2, "")


def test_a_demo_of_a_trace_is_filled(run: Run, wired: Wired, tmp_path: Path) -> None:
    run("demo", "--once", "--trace", tmp_path)
    run("demo", "--once", "--trace", tmp_path, "--load", "0.3", "--seed", "1")
    assert [(spec.load_ratio, spec.seed) for spec in wired.specs] == [(0.8, 7), (0.3, 1)]


def test_an_empty_trace_cluster_is_pointed_out(run: Run, wired: Wired, tmp_path: Path) -> None:
    assert "fill it with --load" in run("fragmentation", "--trace", tmp_path).err
    assert "fill it with --load" not in run("fragmentation", "--trace", tmp_path, "--load", "0.8").err
    assert [spec.load_ratio for spec in wired.specs] == [None, 0.8]
