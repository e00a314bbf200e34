"""A short form of the soak: cycles without pause while MIG layouts, processes and pods come and go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import need_program

ROOT = Path(__file__).parents[4]


@pytest.mark.server
@pytest.mark.slow
def test_memory_files_and_threads_do_not_grow() -> None:
    need_program("gcc")
    command = [sys.executable, "-m", "bench.exporter_soak", "--cycles", "1000", "--gpus", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "0 files, 0 threads" in done.stdout
