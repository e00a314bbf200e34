"""Where the rules are, and how the tests run promtool on them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import need_program

RULES = Path(__file__).resolve().parents[2] / "alert_rules"


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs promtool without raising on its exit code."""
    command = [need_program("promtool"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
