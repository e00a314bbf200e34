"""Many nodes and devices in few words: "gpu[01-16,18] GPU 0-3 each"; programs are told every one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*?)(\d+)$")
_SHOWN = 8  # names, or joined ones, of one group


def places(spots: Iterable[tuple[str, str]]) -> str:
    """(node, what there) pairs as text, nodes with the same told together, in the order in which they come."""
    groups: dict[str, list[str]] = {}
    for node, what in spots:
        groups.setdefault(what, []).append(node)
    return "; ".join(_group(what, nodes) for what, nodes in groups.items())


def ranges(numbers: Iterable[int]) -> str:
    """ "0-3,7" for 0, 1, 2, 3, 7; doubled ones once."""
    return _runs(numbers)


def folded(names: Iterable[str]) -> list[tuple[str, int]]:
    """(text, nodes) of node names, numbers at their ends joined: n01, n02, n04 are one text, "n[01-02,04]"."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        head, digits = found.groups() if found else (name, "")
        numbers.setdefault((head, len(digits)), []).extend([int(digits)] if digits else [])
    return [(_folded(head, width, found), max(1, len(found))) for (head, width), found in numbers.items()]


def _group(what: str, nodes: list[str]) -> str:
    told = folded(nodes)
    rest = sum(count for _, count in told[_SHOWN:])
    text = ", ".join(text for text, _ in told[:_SHOWN]) + (f" and {rest} more nodes" if rest else "")
    each = " each" if what and len(nodes) > 1 else ""
    return f"{text} {what}{each}".strip()


def _folded(head: str, width: int, numbers: list[int]) -> str:
    if len(numbers) < 2:
        return head + "".join(f"{number:0{width}d}" for number in numbers)
    return f"{head}[{_runs(numbers, width)}]"


def _runs(numbers: Iterable[int], width: int = 0) -> str:
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return ",".join(f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}" for low, high in runs)
