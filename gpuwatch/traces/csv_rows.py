"""Strict rows of a CSV file, plain or gzip: every fault is an InputError that names file, line and column."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from gpuwatch.errors import InputError

_ADVICE = "compare the file with the published one, or fetch it again"


class Row:
    """One data row; the readers below refuse what is not a plain whole number within its bounds."""

    def __init__(self, path: Path, line: int, cells: dict[str, str]) -> None:
        self._path = path
        self.line = line
        self._cells = cells

    def text(self, column: str, default: str | None = None) -> str:
        """The cell without outer blanks; an empty one is refused unless `default` is given (also for no column)."""
        cell = self._cells.get(column, "").strip()
        if cell:
            return cell
        if default is None:
            raise self.fault(column, "is empty")
        return default

    def number(self, column: str, low: int, high: int) -> int:
        """A whole number in low..high."""
        cell = self.text(column)
        # str.isdigit alone would let through digits of other scripts, which int() reads and nobody meant.
        if not (cell.isascii() and cell.removeprefix("-").isdigit()):
            raise self.fault(column, f"is {cell!r}, not a whole number")
        if not low <= int(cell) <= high:
            raise self.fault(column, f"is {cell}, outside {low}..{high}")
        return int(cell)

    def fault(self, column: str, what: str) -> InputError:
        """The error for `column` of this row."""
        return InputError(f"{self._path}:{self.line}: column {column} {what}", todo=_ADVICE)


def find_table(folder: Path, stem: str, what: str) -> Path:
    """folder/stem.csv, else folder/stem.csv.gz; when neither exists the error lists the tables that do."""
    for path in (folder / f"{stem}.csv", folder / f"{stem}.csv.gz"):
        if path.is_file():
            return path
    known = tables(folder, stem[: stem.rfind("_list_") + len("_list_")])
    todo = f"choose one of: {', '.join(known)}" if known else "name the folder that holds the trace's CSV files"
    raise InputError(f"no {what} {stem}.csv or {stem}.csv.gz in {folder}", todo=todo)


def tables(folder: Path, prefix: str) -> tuple[str, ...]:
    """What follows `prefix` in the names of the tables in `folder`, sorted."""
    found = [*folder.glob(f"{prefix}*.csv"), *folder.glob(f"{prefix}*.csv.gz")]
    return tuple(sorted({path.name.removeprefix(prefix).split(".")[0] for path in found}))


def read_rows(path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> Iterator[Row]:
    """The rows of `path` in file order; at least one. A column that is neither required nor optional is refused."""
    line = 0
    try:
        with _open(path) as text:
            reader = csv.reader(text, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header, required, optional)
            for cells in reader:
                line = reader.line_num
                if len(cells) != len(header):
                    raise InputError(f"{path}:{line}: {len(cells)} cells under {len(header)} columns", todo=_ADVICE)
                yield Row(path, line, dict(zip(header, cells, strict=True)))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as err:
        cause = str(err) or type(err).__name__
        raise InputError(f"{path}: cannot be read beyond line {line}: {cause}", todo=_ADVICE) from err
    if line == 0:
        raise InputError(f"{path}: has no data rows", todo=_ADVICE)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _check_header(path: Path, header: list[str], required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    if not header:
        raise InputError(f"{path}: is empty", todo=_ADVICE)
    missing = [name for name in required if name not in header]
    unknown = [name for name in header if name not in required and name not in optional]
    doubled = sorted({name for name in header if header.count(name) > 1})
    for fault, names in (("lacks column", missing), ("has the unknown column", unknown), ("doubles column", doubled)):
        if names:
            raise InputError(f"{path}:1: {fault} {', '.join(map(repr, names))}", todo=_ADVICE)
