"""`gpuwatch forecast`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread


@COMMANDS.register("forecast")
def _add(app: typer.Typer) -> None:
    app.command("forecast")(forecast)


@spread
def forecast(
    given: InputOptions,
    out: OutputOptions,
    pool: Annotated[
        list[str] | None, typer.Option("--pool", metavar="NAME", help="Only this pool (may be repeated).")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this workload kind (may be repeated).")
    ] = None,
) -> None:
    """Demand to come per pool and workload kind, with intervals and the skill against a daily repeat.

    Example: gpuwatch forecast --server http://127.0.0.1:9438 --kind all
    """
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.render.reports.forecast import forecast_report

    check(out)
    evaluation = read_input(given, out).evaluation
    chosen = [
        each for each in evaluation.forecasts if (not pool or each.pool in pool) and (not kind or each.kind in kind)
    ]
    emit(forecast_report(evaluation, chosen), out)
    finish(out, partial_reasons(evaluation))
