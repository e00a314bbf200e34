"""Single readings as most groups need them: a number or nothing; marks of "no value" are told apart from numbers.

Only functions of nvidia-ml-py that build their buffers anew in each call are used: some share one buffer as a default
argument, which two threads would overwrite for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gpuwatch_exporters.device.family import Family
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.fields import field_values
from gpuwatch_exporters.nvml.group import Board, Instance

Number = int | float
_NO_VALUE = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))  # "not available" of 32 and 64 bits


class Row(NamedTuple):
    """One call that answers one number: the call, its arguments, where the number goes, its factor to base units."""

    function: Callable[..., Any] | None  # None: this nvidia-ml-py does not know the call
    arguments: tuple[Any, ...]
    family: Family
    labels: tuple[str, ...] = ()
    factor: float = 1


class Field(NamedTuple):
    """One field value: its id and scope, where it goes, its factor to base units."""

    id: int
    family: Family
    labels: tuple[str, ...] = ()
    factor: float = 1
    scope: int = 0


def known(board: Board | Instance, name: str, told: Number | None) -> Number | None:
    """The number, or None where it is one of the library's marks for "no value" (which are counted)."""
    if told in _NO_VALUE:
        board.calls.failures[name, "no_value"] += 1
        return None
    return told


def number(board: Board | Instance, function: Callable[..., Any] | None, *arguments: Any) -> Number | None:
    """The call's answer as a number, or None."""
    if function is None:
        return None
    return known(board, function.__name__, board.ask(function, *arguments))


def share(board: Board, name: str, percent: Number) -> float | None:
    """The percentage as a ratio, or None where it is none (which is counted)."""
    if 0 <= percent <= 100:
        return percent / 100
    board.calls.failures[name, "no_value"] += 1
    return None


def scaled(told: Number, factor: float) -> Number:
    """told x factor; factors below 1 divide by the whole number that they stand for, so that 300 mW is 0.3 W."""
    return told / round(1 / factor) if factor < 1 else told * factor


def rows(board: Board | Instance, table: Iterable[Row]) -> Iterator[Value]:
    """A value for each row that answers."""
    for row in table:
        told = number(board, row.function, *row.arguments)
        if told is not None:
            yield Value(row.family, row.labels, scaled(told, row.factor))


def fields(board: Board, table: Iterable[Field], batch: str) -> Iterator[Value]:
    """A value for each field that answers; one call of the library for all of a batch."""
    asked = tuple(table)
    for each, told in zip(asked, field_values(board, [(f.id, f.scope) for f in asked], batch), strict=True):
        if told is not None:
            yield Value(each.family, each.labels, scaled(told, each.factor))
