"""What docs/exporters.md tells people to write: options that exist, files that are taken."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

import pytest
from gpuwatch_exporters.__main__ import subcommands
from gpuwatch_exporters.serving.options import long_options
from gpuwatch_exporters.serving.outside import fill_defaults
from gpuwatch_exporters.serving.web_config.document import read_web_config

DOCS = Path(__file__).parents[2] / "docs"
# Of other programs that the pages show.
FOREIGN = {"cap-drop", "device", "now", "output", "read-only", "rm", "against", "help"}


def parser(name: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    importlib.import_module(f"gpuwatch_exporters.{name}.command").add_arguments(made)
    return made


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / "exporters.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("page", ["exporters.md", "exporters/holders.md"])
def test_options_of_the_page_exist(page: str) -> None:
    known = {option for name in subcommands() for option in long_options(parser(name))}
    named = set(re.findall(r"(?<![\w-])--([a-z][a-z.-]*[a-z])", (DOCS / page).read_text()))
    assert named - FOREIGN <= known
    assert named & known


def test_the_file_of_options_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text(block("toml"))
    made = parser("nvml")
    fill_defaults(made, ["--config", str(file)], {})
    options = made.parse_args([])
    assert (options.listen.port, options.log_level, options.disable) == (9437, "warning", ["gpm", "media"])


def test_the_web_configuration_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "web.yml"
    file.write_text(block("yaml").replace("$...", "$" + "a" * 53))
    config = read_web_config(file)
    assert config.users.keys() == {"prometheus"}
    assert [each.parent for each in config.files()] == [tmp_path] * 3
