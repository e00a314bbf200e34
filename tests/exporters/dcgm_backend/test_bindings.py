"""The bindings are found or missed in three lines; options; the whole command on the fake."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest
from gpuwatch_exporters.dcgm import bindings
from gpuwatch_exporters.dcgm.command import add_arguments, settings_of
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.errors import SettingsError
from tests.exporters.dcgm_backend.conftest import FAKE, Host
from tests.servers import EXPORTER


def test_without_dcgm_the_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as told:
        bindings.find(tmp_path)
    assert len(told.value.lines()) == 3
    assert str(tmp_path) in told.value.tried
    assert "--bindings" in told.value.todo


def test_every_usual_place_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bindings, "PLACES", (tmp_path / "one", tmp_path / "two"))
    with pytest.raises(SettingsError) as told:
        bindings.find()
    assert "one" in told.value.tried
    assert "two" in told.value.tried


def test_bindings_that_cannot_be_imported_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dcgm_agent_of_old.py").write_text("print 'two'\n")
    monkeypatch.setattr(bindings, "_MODULE", "dcgm_agent_of_old")
    monkeypatch.setattr("sys.path", ["."])
    with pytest.raises(SettingsError, match="SyntaxError"):
        bindings.find(tmp_path)


def test_a_missing_library_is_told(host: Host) -> None:
    import dcgm_structs

    dcgm_structs.library_missing = True
    with pytest.raises(SettingsError) as told:
        host.open(library=Path("/opt/dcgm"))
    assert "/opt/dcgm" in told.value.tried
    assert dcgm_structs.library_folder == "/opt/dcgm"


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["--node-name", "n1", *arguments])


def test_defaults() -> None:
    settings = settings_of(options())
    assert settings.hostengine == "localhost:5555"
    assert settings.is_local
    assert not settings.is_socket


@pytest.mark.parametrize(
    "arguments",
    [
        ("--hostengine", "gpu7"),
        ("--hostengine", "gpu7:port"),
        ("--hostengine", "gpu7:70000"),
        ("--hostengine", "unix:"),
        ("--embedded", "--hostengine", "gpu7:5555"),
        ("--disable", "nothing"),
        ("--compat", "nothing"),
        ("--forget-after", "-1"),
        ("--forget-after", "nan"),
        ("--node-name", ""),
    ],
)
def test_options_that_make_no_sense_are_told(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError):
        settings_of(options(*arguments))


@pytest.mark.server
def test_the_command_prints_a_page_that_holds_compatible_names() -> None:
    arguments = [
        "dcgm",
        "--bindings",
        str(FAKE),
        "--node-name",
        "n1",
        "--once",
        "--compat",
        "dcgm",
        "--holders",
        "none",
    ]
    done = subprocess.run([*EXPORTER, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    families = {each.name: each for each in text_string_to_metric_families(done.stdout)}
    assert {sample.value for sample in families["gpuwatch_gpu_up"].samples} == {1.0}
    assert families["DCGM_FI_DEV_GPU_UTIL"].samples[0].value == 87


@pytest.mark.server
def test_the_command_without_dcgm_ends_in_three_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [*EXPORTER, "dcgm", "--bindings", str(tmp_path), "--once"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 3
    assert "Traceback" not in done.stderr
