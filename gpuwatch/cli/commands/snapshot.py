"""`gpuwatch snapshot record` and `gpuwatch snapshot show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread


@COMMANDS.register("snapshot")
def _add(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Records a cluster to a file that every command reads, or shows one.", no_args_is_help=True
    )
    group.command("record")(record)
    group.command("show")(show)
    app.add_typer(group, name="snapshot")


@spread
def record(
    given: InputOptions,
    output_file: Annotated[
        Path | None, typer.Option("--output-file", metavar="FILE", help="Write there instead of stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes on stderr.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="No progress on stderr.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 11 when a source did not answer.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="-v logs, -vv also prints tracebacks.")
    ] = 0,
) -> None:
    """Writes the cluster as one JSON document, for --snapshot.

    Example: gpuwatch snapshot record --config gpuwatch.toml --output-file now.json
    """
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, finish, note, partial_reasons, write
    from gpuwatch.model.codec import dump_snapshot

    out = OutputOptions(
        output="json", output_file=output_file, quiet=quiet, no_progress=no_progress, strict=strict, verbose=verbose
    )
    check(out)
    read = read_input(given, out)
    snapshot = read.snapshot()
    write(dump_snapshot(snapshot), out)
    if output_file is not None:
        note(f"{len(snapshot.nodes)} nodes and {len(snapshot.jobs)} jobs written to {output_file}", out)
    finish(out, partial_reasons(read.evaluation))


@spread
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded snapshot.")],
    out: OutputOptions,
) -> None:
    """Checks a recorded snapshot strictly and prints its nodes and what they hold.

    Example: gpuwatch snapshot show now.json -o wide
    """
    from gpuwatch.cli.output import check, emit
    from gpuwatch.fit.booking import book
    from gpuwatch.model.codec import read_snapshot
    from gpuwatch.render.reports.snapshot import snapshot_report

    check(out)
    snapshot = read_snapshot(file)
    emit(snapshot_report(snapshot, book(snapshot)), out)
