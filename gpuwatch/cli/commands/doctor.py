"""`gpuwatch doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread


@COMMANDS.register("doctor")
def _add(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


@spread
def doctor(
    given: InputOptions,
    out: OutputOptions,
    reconcile: Annotated[
        bool, typer.Option("--reconcile", help="The count of GPUs step by step, and each counting trap met.")
    ] = False,
) -> None:
    """What was found, what is odd, what is missing and what to do about it.

    Example: gpuwatch doctor --config gpuwatch.toml --reconcile
    """
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.fit.booking import book
    from gpuwatch.render.reports.doctor import doctor_report

    check(out)
    read = read_input(given, out)
    snapshot = read.snapshot()
    emit(doctor_report(read.evaluation, snapshot, book(snapshot), reconcile=reconcile), out)
    finish(out, partial_reasons(read.evaluation))
