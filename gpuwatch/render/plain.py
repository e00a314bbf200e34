"""Model values as plain JSON types: dicts, lists, strings, numbers, None. Field names are kept as they are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any


def plain(thing: Any) -> Any:
    """`thing` with every dataclass as a dict in field order, tuples as lists and times as RFC 3339 in UTC."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return {f.name: plain(getattr(thing, f.name)) for f in fields(thing)}
    if isinstance(thing, dict):
        return {str(key): plain(item) for key, item in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(item) for item in thing]
    if isinstance(thing, datetime):
        return time_text(thing)
    return thing


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC, to the second when there is nothing finer: "2026-03-02T12:00:00Z"."""
    text = at.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"
