"""What a monitoring server knows and lacks, as doctor prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwatch.render.report import Cell, Column, Table
from gpuwatch.render.text import number

_COLUMNS = (Column("what", "Server"), Column("found", "Found", flex=True))
# Longest list of names worth a line.
_MOST_NAMES = 5
_ROWS = (
    ("url", "address"),
    ("dialects", "exporter dialects"),
    ("spellings", "label spellings"),
    ("nodes", "nodes"),
    ("pods", "pods"),
    ("devices", "devices"),
    ("targets_down", "targets down"),
    ("clock_skew_seconds", "clock ahead of ours [s]"),
    ("history_hours", "history [h]"),
    ("failures", "failed queries"),
)


def server_table(name: str, told: Mapping[str, Any]) -> Table:
    """One server's facts; a fact that it would not say is a dash."""
    rows = tuple({"what": label, "found": _shown(told[key])} for key, label in _ROWS if key in told)
    return Table(title=f"What {name} knows", columns=_COLUMNS, rows=rows)


def missing_series(servers: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(what is lost, which series would bring it) for every server."""
    gaps: list[tuple[str, str]] = []
    for name, told in servers.items():
        lacking = told.get("missing", {}).items()
        down = told.get("targets_down", [])[:_MOST_NAMES]
        gaps += [(f"{name}: {need}", f"scrape any of: {_names(any_of)}") for need, any_of in lacking]
        gaps += [(f"{name}: target {each} is down", "start its exporter, or see why scrapes fail") for each in down]
    return gaps


def _shown(fact: Any) -> Cell:
    if isinstance(fact, Mapping):
        return _names([f"{key} ({cause})" for key, cause in fact.items()]) or "none"
    if isinstance(fact, list | tuple):
        return _names(fact) or "none"
    # As text, so that one column of mixed facts is not aligned as numbers.
    return number(fact) if isinstance(fact, int | float) else fact if fact is None else str(fact)


def _names(names: list[Any] | tuple[Any, ...]) -> str:
    shown = ", ".join(str(name) for name in names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown
