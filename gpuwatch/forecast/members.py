"""Which forecasters there are and which take part, by name alone: no model is imported to check a setting."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable

import gpuwatch.forecast.models
from gpuwatch.errors import SettingsError

# Always in the race: a model that cannot beat these has no business to lead.
NAIVE = ("last_value", "seasonal_naive")


def known_models() -> list[str]:
    """Ids of all forecasters, sorted; each is the name of its file."""
    return sorted(module.name for module in pkgutil.iter_modules(gpuwatch.forecast.models.__path__))


def check_models(ids: Iterable[str]) -> None:
    """SettingsError that lists the known ids when one of `ids` is no forecaster."""
    known = known_models()
    for each in ids:
        if each not in known:
            raise SettingsError(f"no forecaster is called {each!r}", todo=f"choose from: {', '.join(known)}")
