"""Where answers go: data to stdout or a file, everything else to stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from gpuwatch.cli.exits import PARTIAL, choice
from gpuwatch.cli.options import OutputOptions
from gpuwatch.errors import GpuwatchError
from gpuwatch.files import replace_file
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.render.report import FORMATS, Report, Style

_TERMINAL_FORMATS = ("table", "wide")
_WRITABLE = "choose a folder that can be written, or free space"


def check(options: OutputOptions) -> None:
    """Refuses what cannot be printed before any work is done (UsageError lists the choices); a log is for -v."""
    choice("-o", options.output, FORMATS.ids())
    if not options.verbose:
        # What fails is told as an error or a note; its log lines would say it twice.
        logging.getLogger("gpuwatch").setLevel(logging.CRITICAL)
    if options.quiet:
        warnings.simplefilter("ignore")
    if options.output_file is not None and options.output_file.is_dir():
        raise GpuwatchError(f"{options.output_file} is a folder", todo="name a file with --output-file")
    if options.output_file is not None and not options.output_file.parent.is_dir():
        # Told now, not after the work.
        raise GpuwatchError(f"cannot write {options.output_file}: there is no such folder", todo=_WRITABLE)


def emit(report: Report, options: OutputOptions) -> None:
    """Prints `report` in the asked format; its notes go to stderr."""
    to_terminal = options.output_file is None and sys.stdout.isatty() and options.output in _TERMINAL_FORMATS
    style = Style(
        color=to_terminal and "NO_COLOR" not in os.environ,
        width=shutil.get_terminal_size().columns if to_terminal else None,
        wide=options.output == "wide",
        unicode=options.output_file is not None or _speaks_unicode(),
    )
    write(FORMATS.get(options.output)(report, style), options)
    for line in report.notes:
        note(line, options)


def write(text: str, options: OutputOptions) -> None:
    """`text` to the chosen file, or to stdout to the last byte."""
    if options.output_file is not None:
        _to_file(options.output_file, text)
        return
    if not _speaks_unicode():
        text = text.encode(sys.stdout.encoding or "ascii", "backslashreplace").decode(sys.stdout.encoding or "ascii")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as err:
        raise GpuwatchError(f"cannot write to stdout: {err.strerror}", todo="see where the output goes") from err


def note(line: str, options: OutputOptions) -> None:
    """One line for a person, on stderr, unless they asked for silence."""
    if not options.quiet:
        print(f"note: {line}", file=sys.stderr)


def partial_reasons(evaluation: Evaluation) -> list[str]:
    """What is missing from this evaluation: sources that did not answer, stages that broke."""
    silent = [
        f"source {each.name} did not answer ({each.cause or 'unknown'})" for each in evaluation.sources if not each.ok
    ]
    broken = [f"stage {each.stage} failed ({each.code}: {each.detail})" for each in evaluation.failures]
    return silent + broken


def finish(options: OutputOptions, reasons: Sequence[str], code: int = 0) -> None:
    """Ends a command: says what was partial, and exits with `code`, or 11 for partial data under --strict."""
    for reason in reasons:
        note(f"partial data: {reason}", options)
    if code == 0 and reasons and options.strict:
        code = PARTIAL
    if code:
        raise typer.Exit(code)


@contextlib.contextmanager
def working(what: str, options: OutputOptions) -> Iterator[None]:
    """Shows on stderr that work goes on, only where a person watches."""
    if not _watched(options):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        yield


@contextlib.contextmanager
def counting(what: str, total: int, options: OutputOptions) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, only where a person watches. Gives the function that is told how many of `total` are done."""
    if not _watched(options):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _watched(options: OutputOptions) -> bool:
    return not options.quiet and not options.no_progress and sys.stderr.isatty()


def _speaks_unicode() -> bool:
    try:
        "█·".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _to_file(path: Path, text: str) -> None:
    try:
        replace_file(path, text)
    except BrokenPipeError:
        raise
    except OSError as err:
        raise GpuwatchError(f"cannot write {path}: {err.strerror}", todo=_WRITABLE) from err
