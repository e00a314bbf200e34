"""Database faults as one error with a stable cause, told without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from gpuwatch.errors import SourceError


class StoreError(SourceError):
    """The store cannot be read or written. Codes: store_locked, store_read_only, store_corrupt, store_full,
    store_unreachable, store_version, store_gone, store_error."""

    code = "store_error"


class StoreGoneError(StoreError):
    """The file is no longer the one that was opened. Whoever holds the store must open it anew."""

    code = "store_gone"


# What the drivers say -> (code, what to do).
_CAUSES: tuple[tuple[str, str, str], ...] = (
    ("is locked", "store_locked", "end the other program that writes to it, or give this one its own [store] url"),
    ("readonly", "store_read_only", "make the file and its folder writable for this user"),
    ("read-only", "store_read_only", "make the file and its folder writable for this user"),
    ("not a database", "store_corrupt", "move the file away; a new one is made"),
    ("malformed", "store_corrupt", "move the file away; a new one is made"),
    ("disk is full", "store_full", "free space on its disk"),
    ("unable to open", "store_unreachable", "check the path of [store] url and its permissions"),
)


@contextmanager
def told(doing: str, name: str) -> Iterator[None]:
    """Turns any database fault inside into a StoreError about `name`."""
    try:
        yield
    except SQLAlchemyError as err:
        cause = str(getattr(err, "orig", None) or err).splitlines()[0]
        found = next(((code, todo) for text, code, todo in _CAUSES if text in cause.lower()), None)
        code, todo = found or ("store_error", "see docs/store.md")
        raise StoreError(f"the store {name} failed: {cause}", tried=doing, todo=todo, code=code) from err
