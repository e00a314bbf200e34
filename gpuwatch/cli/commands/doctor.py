"""`gpuwatch doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

if TYPE_CHECKING:
    from gpuwatch.config import InputSpec


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
    from gpuwatch.counting.traps import traps
    from gpuwatch.fit.booking import book
    from gpuwatch.render.reports.doctor import doctor_report

    check(out)
    read = read_input(given, out)
    snapshot = read.snapshot()
    servers = _servers(read.spec, out)
    met = traps(snapshot, book(snapshot)) if reconcile else None
    emit(doctor_report(read.evaluation, snapshot, met, servers=servers), out)
    finish(out, partial_reasons(read.evaluation))


def _servers(spec: InputSpec | None, out: OutputOptions) -> dict[str, Any]:
    """What every source that can be asked knows and lacks; one that does not answer is already among the sources."""
    if spec is None or spec.kind != "config":
        return {}
    from gpuwatch.cli.output import working
    from gpuwatch.errors import SourceError
    from gpuwatch.render.plain import plain
    from gpuwatch.wiring import describe_sources

    with working("asking the sources what they know", out):
        return {name: plain(told) for name, told in describe_sources(spec) if not isinstance(told, SourceError)}
