"""What a board wants to show, free of Grafana's JSON: panels by purpose, in sections, with the words a reader needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stat", "timeseries", "table", "bargauge"]

NEUTRAL = "blue"
GREEN = "green"
ORANGE = "orange"
RED = "red"


@dataclass(frozen=True)
class Query:
    """One PromQL expression. `legend` is a Grafana legend format, and the column name in tables of several queries."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Step:
    """From this value on the color holds. The first step of a panel is its base and has no value."""

    color: str
    value: float | None = None


@dataclass(frozen=True)
class Panel:
    """One panel. `unit` is Grafana's unit id; `no_value` says why a panel may be empty; sizes are grid cells of 24."""

    kind: Kind
    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    no_value: str
    width: int = 12
    height: int = 8
    steps: tuple[Step, ...] = (Step(NEUTRAL),)
    minimum: int | None = None
    maximum: int | None = None
    stacked: bool = False
    hidden_columns: tuple[str, ...] = ()  # tables: labels and fields that no reader needs
    key_columns: tuple[str, ...] = ()  # tables: labels that name a row, first


@dataclass(frozen=True)
class Section:
    """A titled row of panels."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Board:
    """One dashboard. `uid` never changes once published: links and bookmarks hold it."""

    uid: str
    title: str
    description: str
    sections: tuple[Section, ...]
    refresh: str = "1m"
    since: str = "now-6h"
    tags: tuple[str, ...] = ("gpuwatch",)
