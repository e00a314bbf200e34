from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from gpuwatch_exporters.holders import HolderSettings, add_holder_arguments, holder_settings

from gpuwatch.errors import SettingsError


def parsed(*arguments: str, parser: argparse.ArgumentParser | None = None) -> HolderSettings:
    parser = parser or argparse.ArgumentParser()
    add_holder_arguments(parser)
    return holder_settings(parser.parse_args(arguments))


def test_defaults_are_the_settings_own() -> None:
    assert parsed() == HolderSettings()


def test_every_option() -> None:
    given = parsed(
        "--holders", "slurm, podresources", "--pod-resources-socket", "/s", "--pod-resources-timeout", "1",
        "--pod-map-max-age", "2", "--holders-interval", "3", "--holders-wait", "0.5", "--slurm-job-dir", "/j",
        "--gpu-job-dir", "/g", "--path.cgroupfs", "/c", "--path.procfs", "/p",
    )  # fmt: skip
    assert given == HolderSettings(
        ("podresources", "slurm"), Path("/s"), 1, 2, 3, 0.5, Path("/c"), Path("/p"), Path("/j"), Path("/g")
    )


def test_no_source_at_all() -> None:
    assert parsed("--holders", "none").sources == ()
    assert parsed("--holders", "").sources == ()


def test_a_parser_that_knows_procfs_already_keeps_its_own() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path.procfs", default="/host/proc", type=Path)
    assert parsed(parser=parser).procfs == Path("/host/proc")


@pytest.mark.parametrize(
    "arguments",
    [("--holders", "kubernetes"), ("--holders", "slurm,none"), ("--holders-wait", "-1"), ("--pod-map-max-age", "nan")],
)
def test_bad_settings_say_what_to_do(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as err:
        parsed(*arguments)
    assert err.value.todo
