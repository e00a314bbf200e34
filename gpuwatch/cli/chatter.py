"""Keeps what compiled libraries print out of the data: a solver writes a line to stdout now and then."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """What is written to file descriptor 1 meanwhile goes nowhere; Python code prints nothing here by house rule."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # stdout is closed: there is nothing to keep clean
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        # Compiled code has a buffer of its own, which would be written after the descriptor is back.
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
