"""Python code in a process of its own, where what is imported or how strings are hashed is the point."""

from __future__ import annotations

import os
import subprocess
import sys


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `code` with these variables set besides the test's own; how it ended is the caller's to judge."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def printed(code: str, **environment: str) -> str:
    """What `code` prints; it must end well."""
    done = python(code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
