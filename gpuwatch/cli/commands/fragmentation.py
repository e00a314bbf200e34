"""`gpuwatch fragmentation`."""

from __future__ import annotations

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread


@COMMANDS.register("fragmentation")
def _add(app: typer.Typer) -> None:
    app.command("fragmentation")(fragmentation)


@spread
def fragmentation(given: InputOptions, out: OutputOptions) -> None:
    """The fragmentation index, what strands capacity, and how many of each shape fit now.

    Example: gpuwatch fragmentation --trace openb --load 0.8 -o wide
    """
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.render.reports.fragmentation import fragmentation_report

    check(out)
    evaluation = read_input(given, out).evaluation
    emit(fragmentation_report(evaluation), out)
    finish(out, partial_reasons(evaluation))
