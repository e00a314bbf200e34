"""gpuwatch-exporter as a user meets it: help, version, usage errors, and faults told in lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpuwatch_exporters.__main__ import main, subcommands

from gpuwatch import __version__
from tests.processes import printed


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nothing"],
        ["replay", "--load", "3"],
        ["replay", "--load", "nan"],
        ["replay", "--speed", "-1"],
        ["replay", "--scale", "0"],
        ["replay", "--nodes", "none"],
        ["replay", "--listen", "9437x"],
        ["replay", "--listen", "127.0.0.1:99999"],
        ["replay", "--refresh-seconds", "0"],
        ["replay", "--names", "newer"],
        ["replay", "--trace", "a", "--snapshot", "b"],
        ["replay", "--workload", "default"],
        ["replay", "--trace", "a", "--speed", "2"],
        ["replay", "--snapshot", "a", "--seed", "2"],
        ["replay", "--wat"],
    ],
)
def test_bad_usage_exits_2_and_names_the_fault(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error:" in printed.err


@pytest.mark.parametrize("argv", [["--help"], ["replay", "--help"]])
def test_help_names_what_exists_and_nothing_else(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "replay" in text
    assert set(subcommands()) == {"dcgm", "nvml", "replay", "slurm"}
    if argv[0] == "replay":
        for option in ("--trace", "--snapshot", "--seed", "--speed", "--arrivals-per-minute", "--sd-file", "--names"):
            assert option in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"gpuwatch-exporter {__version__}"


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read"), ("{", "not JSON"), ('{"schema_version": "gpuwatch.snapshot/9"}', "schema_version")],
)
def test_a_bad_snapshot_is_told_in_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, told: str
) -> None:
    path = tmp_path / "s.json"
    if content is not None:
        path.write_text(content)
    assert main(["replay", "--snapshot", str(path), "--listen", "127.0.0.1:0"]) == 1
    err = capsys.readouterr().err
    assert told in err
    assert str(path) in err
    assert "Traceback" not in err


def test_a_missing_trace_folder_and_an_unknown_policy_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--trace", str(tmp_path / "absent"), "--listen", "127.0.0.1:0"]) == 1
    assert "absent" in capsys.readouterr().err
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,4,T4\n")
    (tmp_path / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1024,1,1000\n"
    )
    assert main(["replay", "--trace", str(tmp_path), "--policy", "worst", "--listen", "127.0.0.1:0"]) == 1
    assert "worst" in capsys.readouterr().err


def test_help_and_the_generated_world_need_the_base_installation_only() -> None:
    program = (
        "import sys; from gpuwatch_exporters.replay import command, server;"
        "from gpuwatch_exporters.__main__ import main;"
        "from gpuwatch.clock import SystemClock; from gpuwatch_exporters.replay.worlds import GeneratedWorld;"
        "GeneratedWorld(SystemClock().now());"
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'numpy', 'pydantic', 'pandas', 'typer', 'rich', 'httpx', 'yaml', 'fastapi', 'sqlalchemy'}))"
    )
    assert printed(program) == "[]"
