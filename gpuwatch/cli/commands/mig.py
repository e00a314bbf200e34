"""`gpuwatch mig plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

if TYPE_CHECKING:
    from gpuwatch.cli.inputs import Given
    from gpuwatch.model.mig import MigAsk
    from gpuwatch.placement.mig.devices import Limits

_WHERE = "Which GPUs"


@COMMANDS.register("mig")
def _add(app: typer.Typer) -> None:
    group = typer.Typer(help="Partition layouts for MIG slices.", no_args_is_help=True)
    # Without a callback a group of one command would swallow the command's name.
    group.callback()(lambda: None)
    group.command("plan")(plan)
    app.add_typer(group, name="mig")


@spread
def plan(
    given: InputOptions,
    out: OutputOptions,
    demand: Annotated[
        list[str] | None,
        typer.Option(
            "--demand",
            metavar="PROFILE=N",
            help="So many instances of a profile (may be repeated); else those that the pending jobs ask for.",
        ),
    ] = None,
    gpu_model: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu-model", metavar="MODEL", help="Only GPUs of this model (may be repeated).", rich_help_panel=_WHERE
        ),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="POOL", help="Only these pools (may be repeated).", rich_help_panel=_WHERE),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            "--gpus",
            metavar="N",
            min=1,
            max=100_000,
            help="Plan for N empty GPUs of one --gpu-model.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    include_busy: Annotated[
        bool,
        typer.Option(
            "--include-busy", help="GPUs that jobs hold whole may be drained, last of all.", rich_help_panel=_WHERE
        ),
    ] = False,
    allow_training: Annotated[
        bool, typer.Option("--allow-training", help="Do not keep training off MIG.", rich_help_panel=_WHERE)
    ] = False,
) -> None:
    """How GPUs should be cut for a demand of MIG profiles: fewest GPUs, running instances stay, steps with their undo.

    Example: gpuwatch mig plan --demand 1g.10gb=20 --demand 3g.40gb=4 --gpu-model H100-80 --gpus 8
    """
    from gpuwatch.cli.exits import UsageError
    from gpuwatch.cli.output import check
    from gpuwatch.model.spelled import card_ids
    from gpuwatch.placement.mig.devices import Limits

    check(out)
    asked = _demand(demand or [])
    models = card_ids(gpu_model or ())
    limits = Limits(
        gpu_models=models, pools=tuple(pool or ()), include_busy=include_busy, allow_training=allow_training
    )
    if gpus is None:
        _on_cluster(given, out, asked, limits)
        return
    if given != InputOptions() or pool or include_busy:
        raise UsageError("--gpus plans for empty GPUs and reads no cluster", todo="leave out --gpus or the rest")
    if len(models) != 1 or not asked:
        raise UsageError("--gpus needs one --gpu-model and at least one --demand", todo="name both")
    _on_empty(out, asked, models[0], gpus)


def _on_cluster(given: InputOptions, out: OutputOptions, asked: tuple[MigAsk, ...], limits: Limits) -> None:
    """Plans for the input's own GPUs and, when nothing is asked for by hand, for its own queue."""
    from dataclasses import replace

    from gpuwatch.advice.commands import is_slurm
    from gpuwatch.advice.mig_steps import steps
    from gpuwatch.cli.chatter import without_chatter
    from gpuwatch.cli.inputs import read_input
    from gpuwatch.cli.output import emit, finish, note, partial_reasons
    from gpuwatch.model.settings import AnalysisSettings
    from gpuwatch.placement.mig.asks import waiting_asks
    from gpuwatch.placement.mig.cluster import plan_for
    from gpuwatch.render.reports.mig import mig_plan_report

    read: Given = read_input(given, out)
    snapshot = read.snapshot()
    limits = replace(limits, idle_peak_ratio=(read.settings or AnalysisSettings()).idle_peak_ratio)
    asks, kept_off = (asked, ()) if asked else waiting_asks(snapshot, limits.allow_training)
    with without_chatter():
        found = replace(plan_for(snapshot, asks, limits), training_kept_off=kept_off)
    lines = steps(found.devices, snapshot.jobs, slurm=any(is_slurm(job) for job in snapshot.jobs))
    emit(mig_plan_report(found, lines, read.evaluation), out)
    if not asks:
        note("no job waits for a MIG profile; name a demand with --demand PROFILE=N", out)
    finish(out, partial_reasons(read.evaluation))


def _on_empty(out: OutputOptions, asked: tuple[MigAsk, ...], model: str, count: int) -> None:
    from gpuwatch.cli.chatter import without_chatter
    from gpuwatch.cli.output import emit, finish
    from gpuwatch.placement.mig.cluster import plan_for_empty
    from gpuwatch.render.reports.mig import mig_plan_report

    with without_chatter():
        found = plan_for_empty(model, count, asked)
    emit(mig_plan_report(found, (), None), out)
    finish(out, ())


def _demand(written: list[str]) -> tuple[MigAsk, ...]:
    """The asks of PROFILE=N texts, doubled ones added up. UsageError names the text that is none."""
    from gpuwatch.cli.exits import UsageError
    from gpuwatch.errors import InputError
    from gpuwatch.model.spelled import profile_name
    from gpuwatch.placement.mig.asks import asks_of

    asked: dict[str, int] = {}
    for text in written:
        profile, _, number = text.strip().rpartition("=")
        if not profile or not number.isascii() or not number.isdecimal() or int(number) == 0:
            raise UsageError(
                f"--demand cannot be {text!r}", todo="write a profile and a number above 0, for example 1g.10gb=20"
            )
        name = profile_name(profile)
        asked[name] = asked.get(name, 0) + int(number)
    try:
        return asks_of(asked)
    except InputError as err:
        raise UsageError(err.what, tried=err.tried, todo=err.todo) from err
