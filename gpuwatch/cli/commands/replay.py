"""`gpuwatch replay`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.churn_options import ChurnOptions
from gpuwatch.cli.options import OutputOptions, spread

if TYPE_CHECKING:
    from gpuwatch.experiment.experiment import Workers
    from gpuwatch.experiment.task import Task

_EXPERIMENT, _RUNNING = "What is run", "How it is run"
_ALL = "all"
_MOST_SEEDS = 100_000
_LAST_SEED = 2**32 - 1  # chance mixes seeds in 64 bits, where larger ones would not stay equal in every form
_BACKENDS = ("local", "dask")


@COMMANDS.register("replay")
def _add(app: typer.Typer) -> None:
    app.command("replay")(replay)


@spread
def replay(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="The trace's folder, or its name in $GPUWATCH_TRACES.")],
    out: OutputOptions,
    churn: ChurnOptions,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="ID", help="This policy (may be repeated); else every one.", rich_help_panel=_EXPERIMENT
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="This job list (may be repeated), or 'all'; else default.",
            rich_help_panel=_EXPERIMENT,
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option("--protocol", metavar="ID", help="arrivals (published) or churn.", rich_help_panel=_EXPERIMENT),
    ] = "arrivals",
    inflate: Annotated[
        float | None,
        typer.Option(
            "--inflate",
            metavar="RATIO",
            min=0.01,
            max=10.0,
            help="Demand that arrives, as a multiple of the GPU capacity (1.3).",
            rich_help_panel=_EXPERIMENT,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option("--seeds", metavar="N", min=1, max=_MOST_SEEDS, help="Runs of each.", rich_help_panel=_EXPERIMENT),
    ] = 10,
    first_seed: Annotated[
        int,
        typer.Option(
            "--first-seed",
            metavar="N",
            min=0,
            max=_LAST_SEED,
            help="Seed of the first run.",
            rich_help_panel=_EXPERIMENT,
        ),
    ] = 42,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Keep every result there as it comes, and do not run again what it holds.",
            rich_help_panel=_RUNNING,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, help="Processes at once; else one for each CPU.", rich_help_panel=_RUNNING
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME", help="local or dask.", rich_help_panel=_RUNNING)
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="The Dask scheduler of --backend dask.", rich_help_panel=_RUNNING
        ),
    ] = None,
) -> None:
    """Replays a job trace under placement policies and compares them.

    Example: gpuwatch replay openb --policy fgd --policy best_fit --seeds 10 --resume runs.jsonl
    """
    from gpuwatch.cli.output import check, emit, finish

    check(out)
    workers = _workers(jobs, backend, scheduler)
    if resume is not None and out.output_file is not None and resume.resolve() == out.output_file.resolve():
        _refuse("--resume and --output-file name one file", "name two: one keeps the runs, the other gets the report")
    options = _said(protocol, {"inflate": inflate, **churn.given()})
    tasks = _tasks(
        trace, protocol, workload or ["default"], policy or [], range(first_seed, first_seed + seeds), options
    )
    results = _run(tasks, workers, resume, out)
    from gpuwatch.experiment.protocol import PROTOCOLS

    emit(PROTOCOLS.get(protocol).report(results, dict(tasks[0].options)), out)
    finish(out, ())


def _workers(jobs: int | None, backend: str, scheduler: str | None) -> Workers:
    from gpuwatch.cli.exits import choice
    from gpuwatch.experiment.dask_cluster import run_dask
    from gpuwatch.experiment.workers import cpus, run_local

    if choice("--backend", backend, _BACKENDS) == "local":
        if scheduler is not None:
            _refuse("--scheduler does nothing with --backend local", "leave it out, or give --backend dask")
        return partial(run_local, jobs=jobs or cpus())
    if scheduler is None:
        _refuse("--backend dask needs --scheduler ADDRESS", "for example --scheduler tcp://127.0.0.1:8786")
    if jobs is not None:
        _refuse("--jobs does nothing with --backend dask, which uses every worker of its cluster", "leave it out")
    return partial(run_dask, scheduler=scheduler)


def _said(protocol: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given. One that the protocol would ignore is refused: silence would look like obedience."""
    from gpuwatch.cli.exits import choice
    from gpuwatch.errors import SettingsError
    from gpuwatch.experiment.protocol import PROTOCOLS

    chosen = PROTOCOLS.get(choice("--protocol", protocol, PROTOCOLS.ids()))
    said = {name: each for name, each in given.items() if each is not None}
    for name in sorted(said.keys() - chosen.options.keys()):
        _refuse(f"--{name.replace('_', '-')} does nothing with --protocol {protocol}", "leave it out")
    try:
        chosen.check({**chosen.options, **said})
    except SettingsError as err:
        _refuse(err.what, err.todo)
    return said


def _tasks(
    trace: str, protocol: str, workloads: list[str], policies: list[str], seeds: Sequence[int], options: dict[str, Any]
) -> tuple[Task, ...]:
    from gpuwatch.cli.exits import choice
    from gpuwatch.cli.inputs import trace_folder
    from gpuwatch.experiment.task import tasks_of
    from gpuwatch.placement.policy import POLICIES
    from gpuwatch.traces.trace_format import workloads_of

    known = POLICIES.ids()
    for each in policies:
        choice("--policy", each, known)
    folder = trace_folder(trace, or_else="")
    lists = workloads_of(folder)
    for each in workloads:
        choice("--workload", each, (*lists, _ALL))
    chosen = lists if _ALL in workloads else tuple(dict.fromkeys(workloads))
    return tasks_of(folder, protocol, chosen, dict.fromkeys(policies) or known, seeds, options)


def _run(tasks: Sequence[Task], workers: Workers, resume: Path | None, out: OutputOptions) -> list[Any]:
    """The results in the order of `tasks`; says what is kept when it does not come to its end."""
    from contextlib import nullcontext

    from gpuwatch.cli.output import counting, note
    from gpuwatch.experiment.experiment import run_tasks
    from gpuwatch.experiment.journal import Journal
    from gpuwatch.placement.kernels import jit

    if lacking := jit.lacking():
        note(f"{lacking}, so runs are slow; pip install 'gpuwatch-stack[replay]' makes them fast", out)
    finished = 0
    try:
        with (
            Journal(resume, tasks) if resume else nullcontext() as journal,
            counting("replaying", len(tasks), out) as bar,
        ):

            def told(done: int) -> None:
                nonlocal finished
                finished = done
                bar(done)

            return run_tasks(tasks, workers, journal, told)
    except BaseException:
        if finished:
            note(_left(finished, tasks, resume), out)
        raise


def _left(finished: int, tasks: Sequence[Task], resume: Path | None) -> str:
    """What an experiment leaves that did not come to its end."""
    from gpuwatch.experiment.journal import Journal

    if resume is None:
        return f"{finished} of {len(tasks)} runs were finished and are lost; --resume FILE would keep them"
    with Journal(resume, tasks) as journal:  # read again: the last one may have been written and not been told
        kept = len(journal.known)
    return f"{kept} of {len(tasks)} runs are kept in {resume}; the same command goes on from there"


def _refuse(what: str, todo: str) -> NoReturn:
    from gpuwatch.cli.exits import UsageError

    raise UsageError(what, todo=todo)
