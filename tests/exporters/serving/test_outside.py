"""Options from the environment and a file: which wins, how each kind is read, and how faults are told."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from gpuwatch_exporters.serving.options import Listen, add_serving_arguments
from gpuwatch_exporters.serving.outside import fill_defaults, variable

from gpuwatch.errors import SettingsError


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("--node", help="an option of another room")
    made.add_argument("--needed", required=True)
    made.add_argument("--group", action="append")
    made.add_argument("--level", type=int, choices=(1, 2), default=1)
    made.add_argument("--pods", action=argparse.BooleanOptionalAction, default=True)
    add_serving_arguments(made)
    return made


def read(arguments: list[str], environment: dict[str, str] | None = None) -> argparse.Namespace:
    made = parser()
    fill_defaults(made, arguments, environment or {})
    return made.parse_args(arguments)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text('interval = 3\nnode = "file"\nneeded = "x"\n')
    given = ["--config", str(file)]
    assert read(given).interval == 3
    environment = {"GPUWATCH_EXPORTER_INTERVAL": "4"}
    assert read(given, environment).interval == 4
    assert read([*given, "--interval", "5"], environment).interval == 5
    assert read(given, environment).node == "file"


def test_a_list_on_the_command_line_is_not_added_to_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text('group = ["a"]\nneeded = "x"\n')
    assert read(["--config", str(file), "--group=c"]).group == ["c"]


def test_a_flag_drops_what_it_excludes() -> None:
    made = parser()
    one = made.add_mutually_exclusive_group()
    one.add_argument("--file")
    one.add_argument("--url")
    arguments = ["--needed", "n", "--url", "u"]
    fill_defaults(made, arguments, {"GPUWATCH_EXPORTER_FILE": "f"})
    options = made.parse_args(arguments)
    assert (options.file, options.url) == (None, "u")


def test_every_kind_of_option_is_read_from_the_file_as_its_flag_is(tmp_path: Path) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text(
        'needed = "n"\nlisten = ":1"\nonce = true\npods = false\nlevel = 2\ngroup = ["a", "b"]\n'
        'log-level = "debug"\n[web.config]\nfile = "/etc/web.yml"\n'
    )
    options = read(["--config", str(file)])
    assert options.listen == Listen("", 1)
    assert (options.once, options.pods, options.level, options.group) == (True, False, 2, ["a", "b"])
    assert (options.log_level, options.web_config_file) == ("debug", Path("/etc/web.yml"))


def test_every_kind_of_option_is_read_from_the_environment() -> None:
    environment = {
        "NEEDED": "n", "LISTEN": "off", "ONCE": "no", "PODS": "0", "LEVEL": "2", "GROUP": "a, b", "LOG_LEVEL": "error",
        "WEB_CONFIG_FILE": "w.yml",
    }  # fmt: skip
    options = read([], {f"GPUWATCH_EXPORTER_{name}": text for name, text in environment.items()})
    assert (options.listen, options.once, options.pods, options.level) == (None, False, False, 2)
    assert (options.group, options.log_level, options.web_config_file) == (["a", "b"], "error", Path("w.yml"))


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text('needed = "here"\n')
    assert read([], {"GPUWATCH_EXPORTER_CONFIG": str(file)}).needed == "here"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('interval = 3\n\nintervall = 4\n', ["line 3", "intervall", "did you mean interval?"]),
        ('[web.config]\nfil = "x"\n', ["line 2", "web.config.fil"]),
        ('[web]\nconfig.fil = "x"\n', ["line 2", "web.config.fil"]),
        ("interval = 0\n", ["line 1", "interval", "0.1 to 86400"]),
        ('log-level = "loud"\n', ["log-level", "loud", "debug, info"]),
        ("once = 3\n", ["once", "neither true nor false"]),
        ("interval = [1, 2]\n", ["interval", "not one value"]),
        ("node = true\n", ["node", "not one value"]),
        ('config = "other.toml"\n', ["config", "no such option"]),
        ("help = true\n", ["help", "no such option"]),
        ("interval = \n", ["exporter.toml"]),
    ],
)  # fmt: skip
def test_a_fault_in_the_file_names_line_and_key(tmp_path: Path, text: str, told: list[str]) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read(["--config", str(file)])
    for part in told:
        assert part in caught.value.what


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read(["--config", str(tmp_path / "none.toml")])
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"bytes\.toml"):
        read(["--config", str(tmp_path / "bytes.toml")])


def test_a_fault_in_the_environment_names_the_variable() -> None:
    with pytest.raises(SettingsError, match="GPUWATCH_EXPORTER_INTERVAL: 'soon'"):
        read([], {"GPUWATCH_EXPORTER_INTERVAL": "soon"})


def test_a_variable_that_is_no_option_is_told_and_those_of_a_kubernetes_service_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    environment = {
        "GPUWATCH_EXPORTER_NEEDED": "n",
        "GPUWATCH_EXPORTER_INTERVALL": "3",
        "GPUWATCH_EXPORTER_PORT": "tcp://10.0.0.1:9437",
        "GPUWATCH_EXPORTER_PORT_9437_TCP": "tcp://10.0.0.1:9437",
        "GPUWATCH_EXPORTER_PORT_9437_TCP_ADDR": "10.0.0.1",
        "GPUWATCH_EXPORTER_SERVICE_HOST": "10.0.0.1",
        "GPUWATCH_EXPORTER_SERVICE_PORT_HTTP": "9437",
        "GPUWATCH_EXPORTER_SLURM_SERVICE_HOST": "10.0.0.1",
    }
    read([], environment)
    assert [record.getMessage() for record in caplog.records] == [
        "GPUWATCH_EXPORTER_INTERVALL names no option; did you mean GPUWATCH_EXPORTER_INTERVAL?"
    ]


def test_a_shortened_option_is_refused_since_the_file_it_names_would_be_read_past() -> None:
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        read(["--needed", "n", "--conf", "x.toml"])


def test_a_parser_without_a_file_option_is_left_alone() -> None:
    made = argparse.ArgumentParser()
    made.add_argument("--interval", default="1")
    fill_defaults(made, [], {"GPUWATCH_EXPORTER_INTERVAL": "2"})
    assert made.parse_args([]).interval == "1"


def test_variables_are_spelled_in_capitals() -> None:
    assert variable("web.config.file") == "GPUWATCH_EXPORTER_WEB_CONFIG_FILE"
    assert variable("log-level") == "GPUWATCH_EXPORTER_LOG_LEVEL"
