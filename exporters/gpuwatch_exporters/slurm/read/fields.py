"""Fields of a row in all the forms that the schemas give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]

# "No value" and "infinite" of Slurm's integers of 32 and 64 bits, where a schema prints them as they are. Those of 16
# bits are not here: 65534 and 65535 are fair ids of jobs, and the oldest schema prints null in their place.
_SENTINELS = {0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF}
_NOTHING = {"", "(null)", "N/A", "n/a", "None", "NONE", "Unknown"}


def find(row: Row, *paths: str) -> Any:
    """What stands at the first of the paths ("maximums/time") that is there; None when none is."""
    for path in paths:
        held: Any = row
        for step in path.split("/"):
            held = held.get(step) if isinstance(held, Mapping) else None
        if held is not None:
            return held
    return None


def number(held: Any) -> float | None:
    """A number that is set and finite: plain, or wrapped as {set, infinite, number}. None for everything else."""
    if isinstance(held, Mapping):
        return None if held.get("infinite") or not held.get("set") else number(held.get("number"))
    if isinstance(held, bool) or held is None:
        return None
    if isinstance(held, str):
        return number(int(held)) if held.isdecimal() else None
    if not isinstance(held, (int, float)) or not 0 <= held < math.inf or held in _SENTINELS:
        return None
    return float(held)


def count(held: Any) -> int | None:
    """A whole number, or None."""
    found = number(held)
    return None if found is None else int(found)


def moment(held: Any) -> float | None:
    """A Unix time; 0 means that there is none."""
    return number(held) or None


def text(held: Any) -> str:
    """A text, "" where Slurm says nothing in one of its ways."""
    return held if isinstance(held, str) and held not in _NOTHING else ""


def words(held: Any) -> tuple[str, ...]:
    """Words in lower case, from a list or from one text with commas or plus signs between them."""
    parts = held if isinstance(held, (list, tuple)) else text(held).replace("+", ",").split(",")
    return tuple(part.strip().lower() for part in parts if isinstance(part, str) and part.strip())


def names(held: Any) -> tuple[str, ...]:
    """Names as they are written, from a list or from one text with commas between them."""
    parts = held if isinstance(held, (list, tuple)) else text(held).split(",")
    return tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())
