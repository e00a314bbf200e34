"""Standard streams that the caller closed: lost data is an error, and nothing is written where it does not belong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.model.codec import dump_snapshot
from tests.builders import a_node, a_snapshot


def closed(tmp_path: Path, redirect: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "now.json"
    file.write_text(dump_snapshot(a_snapshot(a_node())), encoding="utf-8")
    line = f'exec "{sys.executable}" -m gpuwatch snapshot show "{file}" {redirect}'
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_data_that_nobody_gets_is_told(tmp_path: Path, redirect: str) -> None:
    ended = closed(tmp_path, redirect)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: cannot write to stdout")
    assert len(ended.stderr.splitlines()) <= 3


@pytest.mark.parametrize("redirect", ["2>&-", "<&- 2>&-"])
def test_without_stderr_the_data_comes_all_the_same(tmp_path: Path, redirect: str) -> None:
    ended = closed(tmp_path, redirect)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Nodes" in ended.stdout
