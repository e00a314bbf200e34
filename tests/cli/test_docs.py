"""docs/cli.md names every command and option, and none that does not exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gpuwatch.cli import exits
from gpuwatch.cli.app import build_app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
ROOT: Any = typer.main.get_command(build_app())


def commands(group: Any = ROOT, path: str = "gpuwatch") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")


COMMANDS = dict(commands())
OPTIONS = {opt for command in COMMANDS.values() for param in command.params for opt in param.opts if opt[0] == "-"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_told(name: str) -> None:
    assert f"## {name}\n" in PAGE or f"`{name}" in PAGE


def test_every_option_is_told_and_no_other() -> None:
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", PAGE))
    assert OPTIONS - {"--help", "-h"} - told == set()
    assert told - OPTIONS - {"-vv"} == set()


def test_every_example_is_a_command_with_options_of_its_own() -> None:
    examples = [
        line.strip("$ ").partition(" | ")[0] for line in PAGE.splitlines() if re.match(r" {4}(\$ )?gpuwatch ", line)
    ]
    assert len(examples) >= 10
    for example in examples:
        words = shlex.split(example)
        name = next(name for name in (" ".join(words[:3]), " ".join(words[:2])) if name in COMMANDS)
        known = {opt for param in COMMANDS[name].params for opt in param.opts}
        assert {word for word in words if word.startswith("-")} <= known, example


def test_every_exit_code_is_told() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == codes
