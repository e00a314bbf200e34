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
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="ID",
            help="Race this forecaster against the naive rules (may be repeated; not --server).",
        ),
    ] = None,
) -> None:
    """Demand to come per pool and workload kind, with intervals and the skill against a daily repeat.

    Example: gpuwatch forecast --server http://127.0.0.1:9438 --kind all
    """
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.render.reports.forecast import forecast_report

    check(out)
    models = _models(model)
    evaluation = read_input(given, out, models).evaluation
    chosen = [
        each for each in evaluation.forecasts if (not pool or each.pool in pool) and (not kind or each.kind in kind)
    ]
    emit(forecast_report(evaluation, chosen), out)
    finish(out, partial_reasons(evaluation))


def _models(named: list[str] | None) -> tuple[str, ...] | None:
    """The forecasters of --model; an unknown one is a UsageError that lists the known ones."""
    from gpuwatch.cli.exits import UsageError
    from gpuwatch.errors import SettingsError
    from gpuwatch.forecast.members import check_models

    if not named:
        return None
    try:
        check_models(named)
    except SettingsError as err:
        raise UsageError(f"--model: {err.what}", todo=err.todo) from err
    return tuple(dict.fromkeys(named))
