"""Options that several commands share, declared once as dataclasses and spread into each command's signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gpuwatch.render.report import FORMATS

_INPUT = "Input (give exactly one)"
_TRACE = "Trace"
_OUTPUT = "Output"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Where the cluster comes from."""

    snapshot: Annotated[
        Path | None,
        typer.Option("--snapshot", metavar="FILE", help="A recorded snapshot.", rich_help_panel=_INPUT),
    ] = None
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="A running gpuwatch daemon.", rich_help_panel=_INPUT),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Read the sources of this file now.", rich_help_panel=_INPUT),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="NAME|DIR",
            help="A public trace: its folder, its name within $GPUWATCH_TRACES, or 'demo' for the generated cluster.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Bearer token for --server.", rich_help_panel=_INPUT),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, help="Longest wait for --server.", rich_help_panel=_INPUT
        ),
    ] = 10.0
    workload: Annotated[
        str, typer.Option("--workload", metavar="NAME", help="Which job list of the trace.", rich_help_panel=_TRACE)
    ] = "default"
    load: Annotated[
        float | None,
        typer.Option(
            "--load",
            metavar="RATIO",
            min=0.0,
            max=2.0,
            help="Fill the trace's cluster until its jobs ask for this share of its GPUs; without it, it is empty.",
            rich_help_panel=_TRACE,
        ),
    ] = None
    load_policy: Annotated[
        str, typer.Option("--load-policy", metavar="NAME", help="How --load places jobs.", rich_help_panel=_TRACE)
    ] = "best_fit"
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            help="Seed of the order in which --load brings jobs, and of --trace demo.",
            rich_help_panel=_TRACE,
        ),
    ] = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How the answer is printed."""

    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help=f"{', '.join(FORMATS.ids())}.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "table"
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output-file",
            metavar="FILE",
            help="Write there instead of stdout; the file is replaced at once or not at all.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes on stderr.", rich_help_panel=_OUTPUT)] = False
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="No progress on stderr.", rich_help_panel=_OUTPUT)
    ] = False
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 11 when a part of the data is missing.", rich_help_panel=_OUTPUT)
    ] = False
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="-v logs, -vv also prints tracebacks.", rich_help_panel=_OUTPUT
        ),
    ] = 0


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: parameters annotated with a dataclass of options become its options on the command line."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    own: list[inspect.Parameter] = []
    shared: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            shared += _parameters(groups[name])
        else:
            own.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: cls(**{f.name: given.pop(f.name) for f in fields(cls)}) for name, cls in groups.items()}
        command(**given, **made)

    parameters = [*own, *shared]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameters(cls: type) -> list[inspect.Parameter]:
    hints = get_type_hints(cls, include_extras=True)
    out = []
    for each in fields(cls):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        out.append(
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])
        )
    return out
