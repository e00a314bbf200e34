"""The one decorator that makes a class a value: frozen, slotted, keyword-only, read strictly from JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

# Read by pydantic when codec.py builds the JSON reader; nothing in the model imports pydantic.
_STRICT: dict[str, Any] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@overload
def value(cls: type[T], /) -> type[T]: ...
@overload
def value() -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[T] | None = None, /) -> type[T] | Callable[[type[T]], type[T]]:
    """Class decorator: a frozen, slotted, keyword-only dataclass whose JSON form forbids unknown fields."""

    def make(target: type[T]) -> type[T]:
        made: Any = dataclass(frozen=True, slots=True, kw_only=True)(target)
        made.__pydantic_config__ = _STRICT
        return made  # type: ignore[no-any-return]

    return make if cls is None else make(cls)
