"""Aligned text for a terminal: numbers to the right, units in the header, colors only where asked for."""

from __future__ import annotations

import textwrap
from functools import singledispatch

from gpuwatch.render.report import FORMATS, Chart, Column, Lines, Report, Section, Style, Table, columns_of
from gpuwatch.render.text import cell_text, clean, display_width, is_number, number, pad

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
    cells = [[cell_text(row.get(column.key), column) for column in columns] for row in section.rows]
    right = [any(is_number(row.get(column.key)) for row in section.rows) for column in columns]
    widths = [
        max(display_width(column.header), *(display_width(line[at]) for line in cells))
        for at, column in enumerate(columns)
    ]
    widths = _fit(widths, columns, style.width)
    out = [*head, _line([column.header for column in columns], widths, right)]
    for line in cells:
        out += _row(line, columns, widths, right, style)
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
def _(section: Lines, style: Style) -> list[str]:
    return [*_heading(section.title, style), *(clean(line) for line in section.lines)]


def _heading(title: str, style: Style) -> list[str]:
    if not title:
        return []
    return [f"{_BOLD}{clean(title)}{_RESET}" if style.color else clean(title)]


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
