"""`gpuwatch rebalance`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

if TYPE_CHECKING:
    from gpuwatch.model.plan import RebalancePlan

_BUDGET = "Budget"
_WHO = "What may move"
_MOST = 1e9  # no plan is larger; it keeps inf and the like out of documents


@COMMANDS.register("rebalance")
def _add(app: typer.Typer) -> None:
    app.command("rebalance")(rebalance)


@spread
def rebalance(
    given: InputOptions,
    out: OutputOptions,
    max_moves: Annotated[
        str,
        typer.Option(
            "--max-moves", metavar="N|P%", help="Moves, or percent of the running jobs.", rich_help_panel=_BUDGET
        ),
    ] = "5%",
    max_gpu_hours: Annotated[
        float | None,
        typer.Option(
            "--max-gpu-hours",
            metavar="HOURS",
            min=0,
            max=_MOST,
            help="Work that all moves lose.",
            rich_help_panel=_BUDGET,
        ),
    ] = None,
    max_per_owner: Annotated[
        int | None,
        typer.Option(
            "--max-per-owner",
            metavar="N",
            min=0,
            help="Moves of one owner; else a quarter of its members.",
            rich_help_panel=_BUDGET,
        ),
    ] = None,
    max_per_tenant: Annotated[
        int | None,
        typer.Option("--max-per-tenant", metavar="N", min=0, help="Moves of one tenant.", rich_help_panel=_BUDGET),
    ] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(
            "--protect",
            metavar="PATTERN",
            help="Jobs, tenants or owners that stay (repeat for more).",
            rich_help_panel=_WHO,
        ),
    ] = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option("--tenant", metavar="NAME", help="Only their jobs move (repeat for more).", rich_help_panel=_WHO),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="POOL", help="Only within these pools (repeat for more).", rich_help_panel=_WHO),
    ] = None,
    include_cpu_jobs: Annotated[
        bool,
        typer.Option(
            "--include-cpu-jobs", help="Jobs without a GPU may move, off CPU beside idle GPUs.", rich_help_panel=_WHO
        ),
    ] = False,
    any_model: Annotated[
        bool,
        typer.Option(
            "--any-model", help="A job may go to any card it accepts, also a slower one.", rich_help_panel=_WHO
        ),
    ] = False,
    horizon_hours: Annotated[
        float,
        typer.Option(
            "--horizon-hours",
            metavar="HOURS",
            min=0.1,
            max=_MOST,
            help="How long a gain is taken to last.",
            rich_help_panel=_BUDGET,
        ),
    ] = 24.0,
    least_gain: Annotated[
        int,
        typer.Option(
            "--least-gain",
            metavar="MILLIGPU",
            min=1,
            max=int(_MOST),
            help="What one move must gain.",
            rich_help_panel=_BUDGET,
        ),
    ] = 100,
    previous: Annotated[
        Path | None,
        typer.Option(
            "--previous", metavar="PLAN", help="Keep this plan (JSON) while it stands and is not clearly worse."
        ),
    ] = None,
    show_commands: Annotated[bool, typer.Option("--show-commands", help="The lines to run, with their undo.")] = False,
) -> None:
    """Which running jobs to move so that waiting ones start and free GPUs become usable: ordered steps, price, gain.

    Example: gpuwatch rebalance --snapshot now.json --max-moves 20 --protect 'prod/*' -o json --output-file plan.json
    """
    from gpuwatch.cli.chatter import without_chatter
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import check, counting, emit, finish, partial_reasons
    from gpuwatch.engine import rebalance as engine_rebalance
    from gpuwatch.errors import InputError
    from gpuwatch.model.plan import PlanLimits
    from gpuwatch.model.settings import AnalysisSettings
    from gpuwatch.render.reports.plan import plan_report

    check(out)
    moves, ratio = _moves(max_moves)
    limits = PlanLimits(
        max_moves=moves,
        max_moves_ratio=ratio,
        max_gpu_hours=max_gpu_hours,
        max_per_owner=max_per_owner,
        max_per_tenant=max_per_tenant,
        protect=tuple(protect or ()),
        tenants=tuple(tenant or ()),
        pools=tuple(pool or ()),
        include_cpu_jobs=include_cpu_jobs,
        any_model=any_model,
        horizon_hours=horizon_hours,
        least_gain_milligpu=least_gain,
    )
    before = _previous(previous)
    read = read_input(given, out)
    snapshot = read.snapshot()
    if before is not None and before.cluster != snapshot.cluster:
        raise InputError(
            f"{previous} is a plan for {before.cluster}, the input is {snapshot.cluster}", todo="leave out --previous"
        )
    with counting("planning: percent of the moves allowed", 100, out) as done, without_chatter():
        plan = engine_rebalance(
            snapshot,
            limits,
            read.settings or AnalysisSettings(),
            read.evaluation.id,
            previous=before,
            progress=lambda found, allowed: done(100 * found // max(1, allowed)),
        )
    emit(plan_report(plan, read.evaluation, show_commands), out)
    finish(out, partial_reasons(read.evaluation))


def _moves(text: str) -> tuple[int | None, float]:
    """(moves, None) or (None, ratio) of "20" or "5%"; UsageError for anything else."""
    from gpuwatch.cli.exits import UsageError

    body = text.strip()
    try:
        number = float(body[:-1]) / 100 if body.endswith("%") else int(body)
    except ValueError:
        number = -1
    if number < 0 or (body.endswith("%") and not number <= 1):
        raise UsageError(f"--max-moves cannot be {text!r}", todo="give a number of moves, or a percentage such as 5%")
    return (None, float(number)) if body.endswith("%") else (int(number), 0.05)


def _previous(path: Path | None) -> RebalancePlan | None:
    if path is None:
        return None
    from gpuwatch.model.plan_codec import read_plan

    return read_plan(path)
