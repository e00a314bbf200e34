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


def tasks(told: str) -> tuple[int, bool]:
    """(tasks that an array's text names, whether those are all): Slurm may cut a long list short ("1,3,5,...")."""
    total, whole = 0, True
    for part in told.partition("%")[0].strip().split(","):
        found = _RANGE.fullmatch(part)
        if found:
            first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            total += max(last - first, 0) // max(step, 1) + 1
        else:
            whole = False
    return total, whole


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
