"""gpuwatch-exporter: one command for all that is scraped.

Each subcommand is one folder here: `HELP`, one line, in its `__init__`, and a module `command` that is imported when
called. A new folder with a `command` is a new subcommand; the other folders are rooms that commands share.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

import gpuwatch_exporters
from gpuwatch import __version__
from gpuwatch.errors import GpuwatchError
from gpuwatch_exporters.serving.outside import fill_defaults

EXIT_FAILURE, EXIT_INTERRUPTED = 1, 130


class Command(Protocol):
    """What the module `command` of a subcommand's folder offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the options."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Does the work and returns the exit code."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand: 0 fine, 1 failure (told in up to three lines on stderr), 2 usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="gpuwatch-exporter",
        description="Exporters of gpuwatch. They need only the base installation.",
        epilog="gpuwatch-exporter COMMAND --help tells the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"gpuwatch-exporter {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    try:
        for name, told in subcommands().items():
            sub = commands.add_parser(name, help=told, description=told[0].upper() + told[1:] + ".")
            if name in arguments[:1]:  # the others stay unimported: a GPU node pays only for what it runs
                _command(name).add_arguments(sub)
                fill_defaults(sub, arguments[1:])
        options = parser.parse_args(arguments)
        return _command(options.command).run(options)
    except GpuwatchError as err:
        print("\n".join(err.lines()), file=sys.stderr)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def subcommands() -> dict[str, str]:
    """The line of help of each subcommand, by name."""
    [root] = gpuwatch_exporters.__path__
    folders = sorted(each.parent.name for each in Path(root).glob("*/command.py"))
    return {name: importlib.import_module(f"gpuwatch_exporters.{name}").HELP for name in folders}


def _command(name: str) -> Command:
    return cast(Command, importlib.import_module(f"gpuwatch_exporters.{name}.command"))


if __name__ == "__main__":
    sys.exit(main())
