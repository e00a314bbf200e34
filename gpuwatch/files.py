"""Files written whole: a reader sees the old text or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str, mode: int | None = None) -> None:
    """Puts `text` (UTF-8) in the place of the file at `path`, in one step. OSError leaves the old file as it was.

    mode: rights of the result; None keeps those of the file replaced, or gives a new one what the umask leaves.
    A link keeps standing and its target is replaced. What is no plain file (a device, a named pipe, /dev/stdout) is
    written into: replacing it would take the device away from everybody.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return
    target = Path(os.path.realpath(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a private file, which the program that waits for the result may not read.
        os.chmod(temporary, _rights(target) if mode is None else mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _rights(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
