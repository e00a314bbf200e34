"""Lists by limit and an opaque cursor that names the last item seen, so that a new evaluation does not shift pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from gpuwatch.api.problems import ProblemError

DEFAULT_LIMIT = 200
MAX_LIMIT = 1000

Item = dict[str, Any]


def page_of(document: Item, key: Callable[[Item], str], limit: int, cursor: str | None) -> Item:
    """`document` with one page of its `items`, and `next`: the cursor of the following page, or None."""
    items: list[Item] = document["items"]
    start = 0
    if cursor is not None:
        last = _decode(cursor)
        start = next((at + 1 for at, item in enumerate(items) if key(item) == last), -1)
        if start < 0:
            raise ProblemError(410, "cursor_gone", "the item that the cursor names is gone; ask again without a cursor")
    chosen = items[start : start + limit]
    following = _encode(key(chosen[-1])) if chosen and start + limit < len(items) else None
    return {**document, "items": chosen, "next": following}


def _encode(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as err:
        raise ProblemError(400, "bad_cursor", "this is no cursor that gpuwatch gave out") from err
