"""`gpuwatch demo`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

_PORT = 9438
_LOAD = 0.8  # busy enough for fragmentation to show


@COMMANDS.register("demo")
def _add(app: typer.Typer) -> None:
    app.command("demo")(demo)


@spread
def demo(
    out: OutputOptions,
    once: Annotated[bool, typer.Option("--once", help="Evaluate once, print the summary and end.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Where the daemon listens.")
    ] = _PORT,
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="NAME|DIR", help="A real trace instead of the generated cluster.")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            "--load", metavar="RATIO", min=0.0, max=2.0, help="How full the trace's cluster is; 0.8 if unsaid."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the generated cluster.")] = 7,
) -> None:
    """The whole product on a generated cluster; nothing else needs to be installed.

    Example: gpuwatch demo --once
    """
    from gpuwatch.cli.exits import UsageError
    from gpuwatch.cli.inputs import DEMO, choose, is_demo, read_input, trace_folder
    from gpuwatch.cli.output import check, emit, finish, note, partial_reasons
    from gpuwatch.render.reports.once import once_report

    named = InputOptions(trace=trace or DEMO, seed=seed, load=load)
    generated = is_demo(choose(named))
    load_ratio = _LOAD if load is None else load
    if not once:
        if out.output != "table" or out.output_file is not None or out.strict:
            raise UsageError(
                "output options go with --once", todo="add --once, or ask the running daemon with --server"
            )
        from gpuwatch.wiring import demo_daemon, run

        note(_lstm_note(), out)
        folder = None if generated else trace_folder(str(trace))
        run(demo_daemon(port, seed, folder, load_ratio=load_ratio))
        return
    if port != _PORT:
        raise UsageError("--port goes with a daemon, and --once runs none", todo="leave one of them out")
    check(out)
    given = named if generated else replace(named, load=load_ratio)
    evaluation = read_input(given, out).evaluation
    emit(once_report(evaluation), out)
    note(_lstm_note(), out)
    finish(out, partial_reasons(evaluation))


def _lstm_note() -> str:
    """How to see the LSTM forecaster, which never runs unasked."""
    from importlib.util import find_spec

    see = "gpuwatch forecast --trace demo --model lstm"
    if find_spec("torch") is not None:
        return f"LSTM forecasts are off; switch them on with: {see}"
    return f"LSTM forecasts need torch: pip install 'gpuwatch-stack[lstm]' (in a checkout '.[lstm]'), then {see}"
