"""Builds the command line from the command files. Cheap: a command imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from gpuwatch import __version__
from gpuwatch.registry import Registry

# A command file registers a function that adds its command (or its group of commands) to the application.
COMMANDS: Registry[Callable[[typer.Typer], None]] = Registry("command", "gpuwatch.cli.commands")

_HELP = """Sees a GPU cluster, counts it honestly, and advises what to do next. It never acts.

Try it with nothing else installed:  gpuwatch demo --once
"""


def build_app() -> typer.Typer:
    """The whole application."""
    app = typer.Typer(
        name="gpuwatch",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    for _id, add in COMMANDS.items():  # noqa: PERF102  # a Registry, not a dict
        add(app)
    return app


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=lambda asked: _print_version(asked), is_eager=True, help="Version.")
    ] = False,
) -> None:
    # The docstring would replace the application's help, so there is none: options before the command come here.
    del version


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gpuwatch {__version__}")
        raise typer.Exit
