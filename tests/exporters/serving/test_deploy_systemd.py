"""The systemd units: verified by systemd itself, fenced in, and with options that exist."""

from __future__ import annotations

import argparse
import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from gpuwatch_exporters.__main__ import subcommands
from gpuwatch_exporters.nvml.command import add_arguments
from gpuwatch_exporters.serving.options import long_options
from gpuwatch_exporters.serving.outside import variable

from tests.conftest import need_program

DEPLOY = Path(__file__).parents[3] / "deploy" / "systemd"
UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))
OPTIONAL = sorted(path.name for path in (DEPLOY / "optional").glob("*.conf"))


@pytest.fixture
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the unit whose program is there."""
    program = tmp_path / "gpuwatch-exporter"
    shutil.copy("/bin/true", program)
    text = (DEPLOY / str(request.param)).read_text()
    made = tmp_path / str(request.param)
    made.write_text(text.replace("/opt/gpuwatch/bin/gpuwatch-exporter", str(program)))
    return made


def verified(unit: Path) -> str:
    """What systemd finds wrong: it ends with 0 on an unknown setting, and only says it."""
    program = need_program("systemd-analyze")
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, indirect=True)
def test_systemd_finds_nothing_wrong(unit: Path) -> None:
    assert verified(unit) == ""


def test_systemd_would_tell_a_setting_that_does_not_exist(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.service"
    wrong.write_text("[Service]\nExecStart=/bin/true\nProtectKernelLog=yes\n")
    assert "ProtectKernelLog" in verified(wrong)


@pytest.mark.parametrize("unit", ["gpuwatch-exporter.service"], indirect=True)
@pytest.mark.parametrize("name", OPTIONAL)
def test_systemd_finds_nothing_wrong_with_an_optional_part(unit: Path, name: str) -> None:
    folder = unit.with_name(unit.name + ".d")
    folder.mkdir()
    shutil.copy(DEPLOY / "optional" / name, folder)
    assert verified(unit) == ""


@pytest.mark.parametrize(
    ("unit", "most"), [("gpuwatch-exporter.service", 3.5), ("gpuwatch-exporter-slurm.service", 2.0)], indirect=["unit"]
)
def test_the_service_is_fenced_in(unit: Path, most: float) -> None:
    program = need_program("systemd-analyze")
    done = subprocess.run(
        [program, "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= most


def settings(name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / name).read_text())
    return dict(parser["Service"])


@pytest.mark.parametrize("name", UNITS)
def test_the_command_and_its_variables_exist(name: str) -> None:
    held = settings(name)
    program, command, *arguments = shlex.split(held["ExecStart"])
    assert program.endswith("/gpuwatch-exporter")
    assert command in subcommands()
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.parse_args(arguments)
    known = {variable(option) for option in long_options(parser)}
    assert {word.partition("=")[0] for word in shlex.split(held.get("Environment", ""))} <= known


def test_the_devices_of_a_driver_that_is_loaded_later_can_be_opened() -> None:
    held = settings("gpuwatch-exporter.service")
    assert not {"PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "PrivateUsers"} & held.keys()


@pytest.mark.parametrize("name", UNITS)
def test_no_capability_and_no_root_unless_an_optional_part_is_put_in(name: str) -> None:
    held = settings(name)
    assert (held["CapabilityBoundingSet"], held["AmbientCapabilities"]) == ("", "")
    assert (held["DynamicUser"], held["NoNewPrivileges"], held["Type"]) == ("yes", "yes", "notify")
    assert int(held["TimeoutStopSec"]) > 5
