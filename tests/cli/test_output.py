"""Data to stdout or to a file that is whole, colors only where a person looks."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.cli import output
from gpuwatch.cli.options import OutputOptions
from gpuwatch.errors import GpuwatchError
from tests.cli.conftest import Run, Wired


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "gpuwatch", *map(str, args)]


def test_1000_rows_through_a_pipe_and_into_a_file_are_whole(snapshot_file: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command("snapshot", "show", snapshot_file, "-o", "json"), stdout=subprocess.PIPE, timeout=60, check=True
    )
    assert len(json.loads(done.stdout)["items"]) == 1000
    path = tmp_path / "out.json"
    silent = subprocess.run(
        command("snapshot", "show", snapshot_file, "-o", "json", "--output-file", path),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (silent.stdout, silent.stderr) == (b"", b"")
    assert path.read_bytes() == done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == ["big.json", "out.json"]


def on_a_terminal(*args: object, env: dict[str, str]) -> str:
    reader, writer = pty.openpty()
    try:
        process = subprocess.Popen(command(*args), stdout=writer, stderr=subprocess.DEVNULL, env=env)
        os.close(writer)
        text = b""
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # Linux says so when the last writer has gone
                break
            if not part:
                break
            text += part
        assert process.wait(timeout=60) == 0
    finally:
        os.close(reader)
    return text.decode()


def test_color_on_a_terminal_unless_no_color(snapshot_file: Path) -> None:
    env = {key: item for key, item in os.environ.items() if key != "NO_COLOR"}
    assert "\x1b[1mNodes\x1b[0m" in on_a_terminal("snapshot", "show", snapshot_file, env=env)
    assert "\x1b" not in on_a_terminal("snapshot", "show", snapshot_file, env={**env, "NO_COLOR": "1"})
    assert "\x1b" not in on_a_terminal("snapshot", "show", snapshot_file, "-o", "csv", env=env)


def test_a_file_is_replaced_whole_and_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o640)
    output.write("new ü\n", OutputOptions(output_file=path))
    assert path.read_bytes() == "new ü\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    fresh = tmp_path / "fresh.txt"
    output.write("x", OutputOptions(output_file=fresh))
    (tmp_path / "plain").write_text("x")
    assert fresh.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_no_scrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GpuwatchError, match="No space left"):
        output.write("new", OutputOptions(output_file=path))
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


def test_a_file_that_cannot_be_written_is_told(run: Run, wired: Wired, tmp_path: Path) -> None:
    ended = run("recommend", "--trace", "demo", "--output-file", tmp_path / "no" / "where")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: cannot write")
    assert run("recommend", "--trace", "demo", "--output-file", tmp_path).code == 1


def test_notes_are_silenced_and_data_is_not(run: Run, wired: Wired) -> None:
    loud = run("recommend", "--trace", "demo", "--top", "1")
    quiet = run("recommend", "--trace", "demo", "--top", "1", "-q")
    assert loud.out == quiet.out
    assert "note: 1 of 3 shown" in loud.err
    assert quiet.err == ""
