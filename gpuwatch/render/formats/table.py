"""Aligned text for a terminal: numbers to the right, units in the header, colors only where asked for."""

from __future__ import annotations

import textwrap
from functools import singledispatch

from gpuwatch.render.report import (
    FORMATS,
    Chart,
    Column,
    Lines,
    Plot,
    Report,
    Section,
    Style,
    Table,
    columns_of,
    sampled,
)
from gpuwatch.render.text import cell_text, clean, display_width, number, pad, stands_right

_GAP = "  "
_BAR_WIDTH = 40
_MIN_FLEX = 24
_SEVERITY_COLORS = {"critical": "\x1b[1;31m", "warning": "\x1b[33m", "info": "\x1b[36m"}
_BOLD, _RESET = "\x1b[1m", "\x1b[0m"


@FORMATS.register("table")
def render_table(report: Report, style: Style) -> str:
    """All sections, a blank line between them."""
    blocks = ["\n".join(_section(section, style)) for section in report.sections]
    return "\n\n".join(block for block in blocks if block) + "\n"


@FORMATS.register("wide")
def render_wide(report: Report, style: Style) -> str:
    """The same with every column, never wrapped."""
    return render_table(report, Style(color=style.color, width=None, wide=True, unicode=style.unicode))


@singledispatch
def _section(section: Section, style: Style) -> list[str]:
    raise TypeError(f"no way to print a {type(section).__name__}")


@_section.register
def _(section: Table, style: Style) -> list[str]:
    head = _heading(section.title, style)
    if not section.rows:
        return [*head, f"({section.empty})"]
    columns = columns_of(section, style.wide)
    below = _below(section, columns, style.width)
    beside = tuple(column for column in columns if column not in below)
    cells = [[cell_text(row.get(column.key), column) for column in beside] for row in section.rows]
    right = [stands_right(column, section.rows) for column in beside]
    widths = _fit(_widths(cells, beside), beside, style.width)
    out = [*head, _line([column.title for column in beside], widths, right)]
    if any(column.unit for column in beside):
        out.append(_line([column.unit and f"[{column.unit}]" for column in beside], widths, right))
    for row, line in zip(section.rows, cells, strict=True):
        out += _row(line, beside, widths, right, style)
        for column in below:
            text = cell_text(row.get(column.key), column)
            out += textwrap.wrap(
                text, max(_MIN_FLEX, style.width or 0), initial_indent="    ", subsequent_indent="    "
            )
    return out


@_section.register
def _(section: Chart, style: Style) -> list[str]:
    labels = max((display_width(bar.label) for bar in section.bars), default=0)
    values = max((len(number(bar.value)) for bar in section.bars), default=0)
    full, empty = ("█", "·") if style.unicode else ("#", ".")
    out = _heading(f"{section.title} [{section.unit}]", style)
    for bar in section.bars:
        filled = round(_BAR_WIDTH * bar.value / section.full) if section.full > 0 else 0
        # Something that is there is seen, however small beside the rest.
        filled = min(_BAR_WIDTH, max(filled, 1 if bar.value > 0 else 0))
        drawn = full * filled + empty * (_BAR_WIDTH - filled)
        line = _GAP.join([pad(clean(bar.label), labels), drawn, number(bar.value).rjust(values), clean(bar.note)])
        out.append(line.rstrip())
    return out


@_section.register
def _(section: Plot, style: Style) -> list[str]:
    return _section(sampled(section), style) if style.wide else []


@_section.register
def _(section: Lines, style: Style) -> list[str]:
    return [*_heading(section.title, style), *(clean(line) for line in section.lines)]


def _heading(title: str, style: Style) -> list[str]:
    if not title:
        return []
    return [f"{_BOLD}{clean(title)}{_RESET}" if style.color else clean(title)]


def _widths(cells: list[list[str]], columns: tuple[Column, ...]) -> list[int]:
    heads = [max(display_width(c.title), display_width(c.unit) + 2 if c.unit else 0) for c in columns]
    return [max(head, *(display_width(line[at]) for line in cells)) for at, head in enumerate(heads)]


def _below(section: Table, columns: tuple[Column, ...], total: int | None) -> tuple[Column, ...]:
    """The flex columns that go under their row, because beside the others there is no room to read them."""
    if total is None:
        return ()
    cells = [[cell_text(row.get(column.key), column) for column in columns] for row in section.rows]
    rigid = sum(width for width, column in zip(_widths(cells, columns), columns, strict=True) if not column.flex)
    flex = tuple(column for column in columns if column.flex)
    room = total - rigid - len(_GAP) * (len(columns) - 1)
    return flex if len(flex) < len(columns) and room < _MIN_FLEX * len(flex) else ()


def _fit(widths: list[int], columns: tuple[Column, ...], total: int | None) -> list[int]:
    """Narrows the flex columns so that a row fits `total`; none below a width that can still be read."""
    flex = [at for at, column in enumerate(columns) if column.flex]
    if total is None or not flex:
        return widths
    spare = total - sum(widths) - len(_GAP) * (len(widths) - 1) + sum(widths[at] for at in flex)
    share = max(_MIN_FLEX, spare // len(flex))
    return [min(width, share) if at in flex else width for at, width in enumerate(widths)]


def _row(
    cells: list[str], columns: tuple[Column, ...], widths: list[int], right: list[bool], style: Style
) -> list[str]:
    parts = [
        textwrap.wrap(cell, width) or [""] if column.flex and display_width(cell) > width else [cell]
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    out = []
    for at in range(max(len(part) for part in parts)):
        line = [part[at] if at < len(part) else "" for part in parts]
        out.append(_line(line, widths, right, columns if style.color else ()))
    return out


def _line(cells: list[str], widths: list[int], right: list[bool], colored: tuple[Column, ...] = ()) -> str:
    padded = [pad(cell, width, to_right) for cell, width, to_right in zip(cells, widths, right, strict=True)]
    for at, column in enumerate(colored):
        if column.severity and cells[at] in _SEVERITY_COLORS:
            padded[at] = f"{_SEVERITY_COLORS[cells[at]]}{padded[at]}{_RESET}"
    return _GAP.join(padded).rstrip()
