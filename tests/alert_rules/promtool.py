"""Where promtool is, and how the tests run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RULES = Path(__file__).resolve().parents[2] / "alert_rules"
PROMTOOL = shutil.which("promtool")


def needs_promtool() -> str:
    """The path of promtool; skips, or fails where the servers are required."""
    if PROMTOOL is None:
        if os.environ.get("GPUWATCH_REQUIRE_SERVERS") == "1":
            pytest.fail("promtool is required here and is not installed (Debian: apt install prometheus)")
        pytest.skip("promtool is not installed (Debian: apt install prometheus)")
    return PROMTOOL


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs promtool without raising on its exit code."""
    command = [needs_promtool(), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
