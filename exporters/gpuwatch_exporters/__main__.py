"""gpuwatch-exporter: one command for all that is scraped. Each subcommand is one folder, imported when called."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from gpuwatch import __version__
from gpuwatch.errors import GpuwatchError

EXIT_FAILURE, EXIT_INTERRUPTED = 1, 130

# name -> (module that holds add_arguments and run, one line of help)
COMMANDS = {
    "replay": (
        "gpuwatch_exporters.replay.command",
        "serve a trace, a snapshot or the generated cluster as dcgm-exporter and kube-state-metrics would",
    ),
}


class Command(Protocol):
    """What the module of a subcommand offers."""

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
    for name, (module, told) in COMMANDS.items():
        sub = commands.add_parser(name, help=told, description=told[0].upper() + told[1:] + ".")
        if name in arguments[:1]:  # the others stay unimported: a GPU node pays only for what it runs
            _command(module).add_arguments(sub)
    options = parser.parse_args(arguments)
    try:
        return _command(COMMANDS[options.command][0]).run(options)
    except GpuwatchError as err:
        print("\n".join(err.lines()), file=sys.stderr)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _command(module: str) -> Command:
    return cast(Command, importlib.import_module(module))


if __name__ == "__main__":
    sys.exit(main())
