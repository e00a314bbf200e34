"""`gpuwatch plan verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread


@COMMANDS.register("plan")
def _add(app: typer.Typer) -> None:
    group = typer.Typer(help="Checks a rebalance plan against the cluster as it is now.", no_args_is_help=True)
    # Without a callback a group of one command would swallow the command's name.
    group.callback()(lambda: None)
    group.command("verify")(verify)
    app.add_typer(group, name="plan")


@spread
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan, written by gpuwatch rebalance -o json.")],
    given: InputOptions,
    out: OutputOptions,
) -> None:
    """Refuses a plan whose world has moved, with the reason of each step; ends with code 10 then.

    Example: gpuwatch plan verify plan.json --config gpuwatch.toml
    """
    from gpuwatch.cli.exits import FOUND
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.model.plan_codec import read_plan
    from gpuwatch.placement.rebalance.world import check_plan
    from gpuwatch.render.reports.plan_verdict import verdict_report

    check(out)
    plan = read_plan(file)
    read = read_input(given, out)
    verdict = check_plan(plan, read.snapshot(), read.evaluation.id)
    emit(verdict_report(verdict, read.evaluation), out)
    finish(out, partial_reasons(read.evaluation), 0 if verdict.valid else FOUND)
