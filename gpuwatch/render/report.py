"""What a format gets to print: one document for programs, sections for people, one flat table for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwatch.registry import Registry

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `unit` is printed in the header; numbers are aligned right and printed with `digits` decimals.

    wide: only in the wide format. flex: takes the space that is left and wraps on a terminal.
    """

    key: str
    title: str
    unit: str = ""
    digits: int | None = None
    wide: bool = False
    flex: bool = False
    severity: bool = False  # colored by its own value on a terminal

    @property
    def header(self) -> str:
        return f"{self.title} [{self.unit}]" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by column key. A key that a row lacks, or None, is printed as a dash: nothing is known there."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    empty: str = "nothing to show"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart: `value` in the chart's unit."""

    label: str
    value: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Horizontal bars on one scale from 0 to `full`."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    full: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot; `points` are (x, y) by rising x. A y of None breaks the line: nothing is known there."""

    label: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over one axis. Drawn where there is room to draw; else a table of every `every`-th x, or nothing."""

    title: str
    x_title: str
    y_unit: str
    curves: tuple[Curve, ...]
    every: int = 10
    digits: int = 1
    draw_from: float | None = None  # a drawing begins at this x, at the lowest y there; None: all, from y = 0


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences and command lines, printed as they are."""

    title: str
    lines: tuple[str, ...]
    code: bool = False  # to be typed into a shell


Section = Table | Chart | Plot | Lines


@dataclass(frozen=True, slots=True)
class Report:
    """One answer in every form that a format may need. `flat` is what csv prints: raw numbers, keys that name units."""

    title: str
    document: dict[str, Any]
    sections: tuple[Section, ...]
    flat: Table
    notes: tuple[str, ...] = field(default=())  # for stderr, never part of the data


@dataclass(frozen=True, slots=True)
class Style:
    """How a format may print: colors only on a terminal, `width` None where nothing must wrap."""

    color: bool = False
    width: int | None = None
    wide: bool = False
    unicode: bool = True


Renderer = Callable[[Report, Style], str]

FORMATS: Registry[Renderer] = Registry("output format", "gpuwatch.render.formats")


def sampled(plot: Plot) -> Table:
    """The plot as a table: one row for each x that `every` divides, one column for each curve."""
    at = [dict(curve.points) for curve in plot.curves]
    shown = sorted({x for points in at for x in points if x % plot.every == 0})
    columns = [
        Column(str(place), curve.label, plot.y_unit, digits=plot.digits) for place, curve in enumerate(plot.curves)
    ]
    rows = [{"x": x, **{str(place): points.get(x) for place, points in enumerate(at)}} for x in shown]
    return Table(title=plot.title, columns=(Column("x", plot.x_title), *columns), rows=tuple(rows))


def columns_of(table: Table, wide: bool) -> tuple[Column, ...]:
    """The columns to print."""
    return tuple(column for column in table.columns if wide or not column.wide)
