"""One HTML file that needs no other: every text escaped, style inline, no script."""

from __future__ import annotations

from functools import singledispatch
from html import escape as html_escape

from gpuwatch.render.report import FORMATS, Chart, Column, Lines, Plot, Report, Section, Style, Table, columns_of
from gpuwatch.render.text import cell_text, clean, number, stands_right

_CSS = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;min-width:50%}
th,td{padding:.3rem .7rem;border-bottom:1px solid #8886;text-align:left;vertical-align:top}
th,td{white-space:nowrap}th small{display:block;font-weight:400}
.n{text-align:right;font-variant-numeric:tabular-nums}.f{white-space:normal;min-width:15rem}
.track{display:block;width:min(18rem,30vw);margin-top:.3rem;background:#8883}
.bar{display:block;height:.8rem;min-width:1px;background:#3b82c4}
.critical{color:#c62828;font-weight:600}.warning{color:#a86500;font-weight:600}.info{color:#2a6f97}
pre{background:#8882;padding:.7rem;overflow-x:auto}
@media(prefers-color-scheme:dark){.critical{color:#ff8a80}.warning{color:#ffc168}.info{color:#8ecdf2}}
"""


@FORMATS.register("html")
def render_html(report: Report, style: Style) -> str:
    """The sections as one page."""
    body = "\n".join(_section(section, style.wide) for section in report.sections)
    title = escape(report.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def escape(text: str) -> str:
    """`text` as HTML text or attribute value."""
    return html_escape(clean(text), quote=True)


def _heading(title: str) -> str:
    return f"<h2>{escape(title)}</h2>\n" if title else ""


@singledispatch
def _section(section: Section, wide: bool) -> str:
    raise TypeError(f"no way to print a {type(section).__name__}")


@_section.register
def _(section: Table, wide: bool) -> str:
    if not section.rows:
        return f"{_heading(section.title)}<p>{escape(section.empty)}</p>"
    columns = columns_of(section, wide)
    numeric = {column.key for column in columns if stands_right(column, section.rows)}
    head = "".join(f"<th{_class(column, numeric)}>{_header(column)}</th>" for column in columns)
    rows = "\n".join(
        "<tr>" + "".join(_cell(row.get(column.key), column, numeric) for column in columns) + "</tr>"
        for row in section.rows
    )
    return (
        f'{_heading(section.title)}<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


@_section.register
def _(section: Chart, wide: bool) -> str:
    rows = "\n".join(
        f'<tr><td>{escape(bar.label)}</td><td><span class="track">'
        f'<span class="bar" style="width:{_percent(bar.value, section.full):.1f}%"></span></span></td>'
        f'<td class="n">{number(bar.value)}</td><td class="f">{escape(bar.note)}</td></tr>'
        for bar in section.bars
    )
    return f'{_heading(f"{section.title} [{section.unit}]")}<div class="scroll"><table>\n{rows}\n</table></div>'


@_section.register
def _(section: Plot, wide: bool) -> str:
    from gpuwatch.render.plot import drawn  # few reports have one

    return f"{_heading(f'{section.title} [{section.y_unit}]')}{drawn(section)}"


@_section.register
def _(section: Lines, wide: bool) -> str:
    if section.code:
        text = "\n".join(escape(line) for line in section.lines)
        return f"{_heading(section.title)}<pre>{text}</pre>"
    return _heading(section.title) + "\n".join(f"<p>{escape(line)}</p>" for line in section.lines)


def _header(column: Column) -> str:
    return escape(column.title) + (f"<small>{escape(column.unit)}</small>" if column.unit else "")


def _class(column: Column, numeric: set[str]) -> str:
    return ' class="f"' if column.flex else ' class="n"' if column.key in numeric else ""


def _cell(cell: str | int | float | bool | None, column: Column, numeric: set[str]) -> str:
    text = escape(cell_text(cell, column))
    if column.severity and text in ("critical", "warning", "info"):
        return f'<td class="{text}">{text}</td>'
    return f"<td{_class(column, numeric)}>{text}</td>"


def _percent(amount: float, full: float) -> float:
    return max(0.0, min(100.0, 100 * amount / full)) if full > 0 else 0.0
