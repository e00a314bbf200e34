"""Markdown with tables, for an issue or a chat."""

from __future__ import annotations

import re
from functools import singledispatch

from gpuwatch.render.report import FORMATS, Chart, Lines, Plot, Report, Section, Style, Table, columns_of, sampled
from gpuwatch.render.text import cell_text, clean, number, stands_right

_MARKUP = re.compile(r"([\\`*_\[\]<>|~])")


@FORMATS.register("md")
def render_md(report: Report, style: Style) -> str:
    """A heading, then every section under its own."""
    blocks = [f"# {escape(report.title)}", *("\n".join(_section(section, style.wide)) for section in report.sections)]
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """`text` as Markdown that shows it letter for letter, pipes and angle brackets included."""
    return _MARKUP.sub(r"\\\1", clean(text))


def _heading(title: str) -> list[str]:
    return [f"## {escape(title)}", ""] if title else []


@singledispatch
def _section(section: Section, wide: bool) -> list[str]:
    raise TypeError(f"no way to print a {type(section).__name__}")


@_section.register
def _(section: Table, wide: bool) -> list[str]:
    if not section.rows:
        return [*_heading(section.title), f"_{escape(section.empty)}_"]
    columns = columns_of(section, wide)
    right = [stands_right(column, section.rows) for column in columns]
    return [
        *_heading(section.title),
        _row([column.header for column in columns]),
        "|" + "|".join(" ---: " if to_right else " --- " for to_right in right) + "|",
        *(_row([cell_text(row.get(column.key), column) for column in columns]) for row in section.rows),
    ]


@_section.register
def _(section: Chart, wide: bool) -> list[str]:
    return [
        *_heading(section.title),
        _row(["", section.unit, ""]),
        "| --- | ---: | --- |",
        *(_row([bar.label, number(bar.value), bar.note]) for bar in section.bars),
    ]


@_section.register
def _(section: Plot, wide: bool) -> list[str]:
    return _section(sampled(section), wide)


@_section.register
def _(section: Lines, wide: bool) -> list[str]:
    if not section.code:
        return [*_heading(section.title), *(f"- {escape(line)}" for line in section.lines)]
    # A fence longer than any run of backticks inside cannot be closed by what it holds.
    longest = max((len(run) for line in section.lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [*_heading(section.title), f"{fence}sh", *(clean(line) for line in section.lines), fence]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"
