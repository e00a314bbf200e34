"""`gpuwatch recommend`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

_FILTER = "Filters (each may be repeated)"
Names = list[str] | None


@COMMANDS.register("recommend")
def _add(app: typer.Typer) -> None:
    app.command("recommend")(recommend)


@spread
def recommend(
    given: InputOptions,
    out: OutputOptions,
    kind: Annotated[
        Names, typer.Option("--kind", metavar="RULE", help="Rule, for example idle_held.", rich_help_panel=_FILTER)
    ] = None,
    pool: Annotated[Names, typer.Option("--pool", metavar="NAME", help="Pool.", rich_help_panel=_FILTER)] = None,
    tenant: Annotated[Names, typer.Option("--tenant", metavar="NAME", help="Tenant.", rich_help_panel=_FILTER)] = None,
    node: Annotated[Names, typer.Option("--node", metavar="NAME", help="Node.", rich_help_panel=_FILTER)] = None,
    gpu_model: Annotated[
        Names, typer.Option("--gpu-model", metavar="MODEL", help="GPU model.", rich_help_panel=_FILTER)
    ] = None,
    min_severity: Annotated[
        str, typer.Option("--min-severity", metavar="SEVERITY", help="info, warning or critical.")
    ] = "info",
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="KEY", help="value, gpus, gpu-hours, cost, confidence or severity; default: as ranked."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option("--top", metavar="N", min=1, help="Print only the first N.")] = None,
    group_by: Annotated[
        str | None,
        typer.Option("--group-by", metavar="KEY", help="Sums per rule, tenant, pool, node, gpu-model or severity."),
    ] = None,
    show_commands: Annotated[
        bool, typer.Option("--show-commands", help="The lines to run and to undo; gpuwatch runs none of them.")
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit 10 when something is at least this severe."),
    ] = None,
) -> None:
    """Ranked advice: what to give back, move or repair, what it is worth, and how sure that is.

    Example: gpuwatch recommend --trace demo --min-severity warning --top 10 --show-commands
    """
    from gpuwatch.cli.exits import FOUND, choice
    from gpuwatch.cli.inputs import choose, read_input
    from gpuwatch.cli.output import check, emit, finish, note, partial_reasons
    from gpuwatch.render import select
    from gpuwatch.render.reports.recommendations import recommendations_report

    check(out)
    choice("--min-severity", min_severity, select.SEVERITIES)
    # A daemon has its own rules; only those of this installation can be checked before anything is read.
    rules = _rules() if kind and choose(given).kind != "server" else tuple(kind or ())
    for option, value, choices in (
        ("--fail-on", fail_on, select.SEVERITIES),
        ("--sort", sort, tuple(select.SORT_KEYS)),
        ("--group-by", group_by, tuple(select.GROUP_KEYS)),
        *(("--kind", name, rules) for name in kind or ()),
    ):
        if value is not None:
            choice(option, value, choices)
    evaluation = read_input(given, out).evaluation
    wanted = select.Wanted(
        rules=tuple(kind or ()),
        pools=tuple(pool or ()),
        tenants=tuple(tenant or ()),
        nodes=tuple(node or ()),
        gpu_models=tuple(gpu_model or ()),
        min_severity=min_severity,
    )
    matching = select.ranked(select.keep(evaluation.recommendations, wanted), sort)
    shown = matching[:top]
    if len(shown) < len(matching):
        note(f"{len(shown)} of {len(matching)} shown (--top {top})", out)
    report = recommendations_report(
        evaluation, shown, group_by=group_by, group_over=matching, show_commands=show_commands
    )
    emit(report, out)
    # What --top hides still counts: a gate must not pass because the list was cut.
    found = fail_on is not None and select.at_or_above(matching, fail_on) > 0
    finish(out, partial_reasons(evaluation), FOUND if found else 0)


def _rules() -> tuple[str, ...]:
    from gpuwatch.advice.rule import RULES

    return tuple(RULES.ids())
