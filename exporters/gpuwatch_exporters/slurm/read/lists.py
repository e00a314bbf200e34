"""Lists in Slurm's short form: node names, node[001-016,020],gpu7, and array tasks, 0-9:3,12%2."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST_NAMES = 100_000
_RANGE = re.compile(r"(\d+)(?:-(\d+))?(?::(\d+))?")


def expand(told: str) -> tuple[str, ...]:
    """The names of a host list, in order. ValueError when it is none, or longer than any cluster."""
    out: list[str] = []
    for part in _outside(told):
        for name in _names(part):
            out.append(name)
            if len(out) > _MOST_NAMES:
                raise ValueError(f"more than {_MOST_NAMES} names in a host list")
    return tuple(out)


def tasks(told: str) -> int | None:
    """How many tasks an array's text names; None where it is cut short ("...") or not understood."""
    body = told.partition("%")[0].strip()
    if not body:
        return None
    total = 0
    for part in body.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            return None
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        total += (last - first) // max(step, 1) + 1
    return total


def _outside(told: str) -> Iterator[str]:
    """Parts between the commas that stand outside of brackets."""
    depth, begin = 0, 0
    for at, char in enumerate(told):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield told[begin:at]
            begin = at + 1
    if depth:
        raise ValueError(f"{told!r}: a bracket is not closed")
    if begin < len(told):
        yield told[begin:]


def _names(part: str) -> Iterator[str]:
    before, bracket, tail = part.strip().partition("[")
    if not bracket:
        if before:
            yield before
        return
    inside, _, after = tail.partition("]")
    for piece in inside.split(","):
        found = _RANGE.fullmatch(piece)
        if not found:
            raise ValueError(f"{piece!r} is no range of a host list")
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) > _MOST_NAMES:
            raise ValueError(f"{piece!r} is no range of a host list")
        for each in range(int(first), int(last) + 1):
            for rest in _names(after) if after else ("",):
                yield f"{before}{each:0{len(first)}d}{rest}"
