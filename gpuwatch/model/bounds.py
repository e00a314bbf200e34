"""Which numbers a snapshot may hold: types are the reader's business, amounts that cannot be are found here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

Location = tuple[int | str, ...]

_LARGEST = 2**53  # beyond it a float no longer tells neighbors apart, and no cluster has as much of anything
_UNBOUNDED = ("priority", "temperature_celsius")  # may be negative
_BOUNDS: dict[str, tuple[int, int]] = {
    "milligpu": (0, MILLI),
    "milligpu_per_gpu": (1, MILLI),
    "replicas": (1, _LARGEST),
    "window_seconds": (1, _LARGEST),
}


def faults(thing: object, at: Location = ()) -> Iterator[tuple[Location, str]]:
    """(location, what is wrong) for every number in `thing` that is out of its bounds, depth first."""
    if isinstance(thing, tuple):
        for position, part in enumerate(thing):
            yield from faults(part, (*at, position))
    elif is_dataclass(thing):
        for name in _names(thing.__class__):
            part = getattr(thing, name)
            if isinstance(part, (int, float)) and not isinstance(part, bool):
                if told := _out(name, part):
                    yield (*at, name), told
            elif isinstance(part, tuple) or is_dataclass(part):
                yield from faults(part, (*at, name))
        if isinstance(thing, DemandShape) and thing.gpus > 1 and thing.milligpu_per_gpu != MILLI:
            yield (*at, "milligpu_per_gpu"), f"Input should be {MILLI} where a member asks for several devices"


def _out(name: str, number: float) -> str | None:
    if name in _UNBOUNDED:
        return None
    low, high = (0, 1) if name.endswith("_ratio") else _BOUNDS.get(name, (0, _LARGEST))
    return None if low <= number <= high else f"Input should be between {low} and {high}"


@cache
def _names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))
