"""The flat table as CSV for spreadsheets: a header line that names units, then raw numbers."""

from __future__ import annotations

import csv
import io

from gpuwatch.render.report import FORMATS, Cell, Report, Style
from gpuwatch.render.text import clean

# A spreadsheet runs a cell that starts like this as a formula, and job names are written by tenants.
_FORMULA_STARTS = ("=", "+", "-", "@")


@FORMATS.register("csv")
def render_csv(report: Report, style: Style) -> str:
    """One header line, one line per row. An unknown number is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.key for column in report.flat.columns])
    for row in report.flat.rows:
        writer.writerow([_raw(row.get(column.key)) for column in report.flat.columns])
    return out.getvalue()


def _raw(cell: Cell) -> Cell:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        flat = clean(cell)
        return f"'{flat}" if flat.startswith(_FORMULA_STARTS) else flat
    return cell
