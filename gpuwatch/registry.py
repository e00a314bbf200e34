"""One Registry class for everything that is "one file each": dialects, policies, forecasters, rules, outputs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from gpuwatch.errors import RegistryError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by id. Iteration is by id, never by order of import.

    The modules of `package` are imported on first use, so that a new file registers itself and nothing else changes.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self._kind = kind
        self._package = package
        self._items: dict[str, T] = {}
        self._loaded = package is None

    def register(self, id_: str) -> Callable[[T], T]:
        """Decorator; a second registration of `id_` is a RegistryError at import."""

        def add(item: T) -> T:
            if id_ in self._items:
                raise RegistryError(f"two {self._kind}s are registered as {id_!r}")
            self._items[id_] = item
            return item

        return add

    def get(self, id_: str) -> T:
        """The thing registered as `id_`; an unknown id is a RegistryError that lists the known ones."""
        self._load()
        try:
            return self._items[id_]
        except KeyError:
            known = ", ".join(sorted(self._items))
            raise RegistryError(f"no {self._kind} is called {id_!r}", todo=f"choose one of: {known}") from None

    def ids(self) -> list[str]:
        """All ids, sorted."""
        self._load()
        return sorted(self._items)

    def items(self) -> Iterator[tuple[str, T]]:
        """All (id, thing) pairs, sorted by id."""
        self._load()
        return iter(sorted(self._items.items()))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        assert self._package is not None
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")
