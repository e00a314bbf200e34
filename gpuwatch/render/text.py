"""Cells as text. Names come from other people's clusters, so nothing of them reaches a terminal or a page raw."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from gpuwatch.model.units import decimal
from gpuwatch.render.report import Cell, Column, Row

DASH = "-"


def clean(text: str) -> str:
    """`text` on one line without control or invisible formatting characters, which could redraw a terminal."""
    if text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char in "\t\n\r" or unicodedata.category(char) == "Zs" else "\N{REPLACEMENT CHARACTER}"


def cell_text(cell: Cell, column: Column) -> str:
    """For people: thousands separated, the column's decimals, a dash for what is not known."""
    if cell is None:
        return DASH
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int | float):
        return number(cell, column.digits)
    return clean(cell)


def number(amount: float, digits: int | None = None) -> str:
    """A number for people: "1,234", "0.5"; with `digits` decimals, else at most three without trailing zeros."""
    if digits is not None:
        text = f"{amount:,.{digits}f}"
        return text.lstrip("-") if not text.strip("-0.,") else text
    return decimal(amount)


def is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def stands_right(column: Column, rows: Iterable[Row]) -> bool:
    """Numbers stand to the right, and so do the dashes of a measure that no row knows."""
    cells = [cell for row in rows if (cell := row.get(column.key)) is not None]
    return any(map(is_number, cells)) or (column.digits is not None and not cells)


def display_width(text: str) -> int:
    """Terminal columns that `text` takes; wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` filled with spaces to `width` terminal columns."""
    room = " " * max(0, width - display_width(text))
    return room + text if right else text + room
