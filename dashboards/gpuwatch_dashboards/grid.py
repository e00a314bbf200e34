"""Places panels on Grafana's 24-column grid, left to right, top to bottom, without holes between rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.errors import InputError

COLUMNS = 24


@dataclass(frozen=True)
class Place:
    """Where one panel goes, in grid cells."""

    x: int
    y: int
    width: int
    height: int


def pack(sizes: Sequence[tuple[int, int]], top: int) -> tuple[list[Place], int]:
    """(width, height) pairs -> their places from row `top` on, and the first free row below.

    A panel that does not fit beside the last one starts a new line. Panels of one line must be equally high, because
    Grafana would move the next line up under the lower ones.
    """
    places: list[Place] = []
    x, y, height = 0, top, 0
    for width, high in sizes:
        if not (0 < width <= COLUMNS and high > 0):
            raise InputError(f"a panel of {width} x {high} cells does not fit on a grid of {COLUMNS} columns")
        if x + width > COLUMNS:
            x, y, height = 0, y + height, 0
        if height not in (0, high):
            raise InputError(f"panels of one line are {height} and {high} cells high", todo="give them one height")
        places.append(Place(x, y, width, high))
        x, height = x + width, high
    return places, y + height
