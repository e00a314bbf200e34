"""`gpuwatch serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuwatch.cli.app import COMMANDS


@COMMANDS.register("serve")
def _add(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", envvar="GPUWATCH_CONFIG", help="TOML or YAML configuration.")
    ],
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="-vv prints tracebacks.")] = 0,
) -> None:
    """Runs the daemon: reads the sources, evaluates, and serves metrics, API and page until stopped.

    Example: gpuwatch serve --config /etc/gpuwatch.toml
    """
    from gpuwatch.config import load_config
    from gpuwatch.wiring import build_daemon, run

    run(build_daemon(load_config(config)))
