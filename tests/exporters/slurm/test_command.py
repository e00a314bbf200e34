"""gpuwatch-exporter slurm as a user meets it: its options, and what they come to."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from gpuwatch_exporters.__main__ import main
from gpuwatch_exporters.slurm import command
from gpuwatch_exporters.slurm.ask.commands import Commands
from gpuwatch_exporters.slurm.ask.rest import Rest

from gpuwatch.errors import SettingsError
from tests.processes import printed


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["--timeout", "0"], ["--timeout", "soon"], ["--min-call-seconds", "0"], ["--max-tenants", "0"],
        ["--max-series", "many"], ["--without", "nodes"], ["--wat"],
    ],
)  # fmt: skip
def test_bad_usage_exits_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["slurm", *argv])
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--token-file", "t"], "--token-file means nothing without --rest-url"),
        (["--rest-user", "ann"], "--rest-user means nothing"),
        (["--rest-version", "v0.0.41"], "--rest-version means nothing"),
        (["--slurm-bin", "/nowhere"], "/nowhere is no folder"),
        (["--rest-url", "unix:/x", "--slurm-bin", "/bin"], "--slurm-bin means nothing"),
        (["--rest-url", "slurm"], "is no address of slurmrestd"),
    ],
)
def test_options_that_make_no_sense_together(argv: list[str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        command.source_of(parsed(*argv))


def test_what_options_come_to(tmp_path: Path) -> None:
    options = parsed(
        "--timeout", "3", "--min-call-seconds", "40", "--cluster", "c", "--without", "partitions", "--per-user",
        "--per-gpu", "--max-series", "7", "--max-tenants", "5", "--slurm-bin", str(tmp_path),
    )  # fmt: skip
    settings = command.settings_of(options)
    assert (settings.timeout_seconds, settings.min_call_seconds, settings.cluster) == (3, 40, "c")
    assert (settings.without, settings.per_user, settings.most_tenants) == (("partitions",), True, 5)
    assert settings.single == (False, True, False, 7)
    assert isinstance(command.source_of(options), Commands)
    assert isinstance(command.source_of(parsed("--rest-url", "unix:/run/slurmrestd")), Rest)


def test_by_default_nothing_single_is_told_and_the_floor_is_below_the_interval() -> None:
    """A call that is due a moment after the cycle would wait for the next one."""
    options = parsed()
    settings = command.settings_of(options)
    assert settings.single[:3] == (False, False, False)
    assert not settings.per_user
    assert settings.min_call_seconds < options.interval


def test_it_needs_the_base_installation_only() -> None:
    program = (
        "import sys; from gpuwatch_exporters.slurm import command, exporter;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'numpy', 'pydantic', 'pynvml', 'prometheus_client', 'typer', 'httpx', 'yaml', 'grpc'}))"
    )
    assert printed(program) == "[]"
