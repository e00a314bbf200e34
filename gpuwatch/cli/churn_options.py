"""Options of `gpuwatch replay --protocol churn`. None is "not said": the protocol's own default holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from gpuwatch.cli.exits import choice
from gpuwatch.placement.churn.settings import QUEUES, TIMES

_PANEL = "How jobs come and go (--protocol churn)"
_SWITCH = ("on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnOptions:
    """Named as in ChurnSettings, which tells bounds and defaults."""

    times: Annotated[
        str | None,
        typer.Option(
            "--times",
            metavar="SOURCE",
            help="drawn; durations: the trace's, arrivals drawn; trace: both as it tells (drawn).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    load: Annotated[
        float | None,
        typer.Option(
            "--load",
            metavar="RATIO",
            help="GPU time asked for, of the GPU time there is (0.9).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    turnovers: Annotated[
        float | None,
        typer.Option("--turnovers", metavar="N", help="Jobs arrive for N mean durations (6).", rich_help_panel=_PANEL),
    ] = None
    median_seconds: Annotated[
        float | None,
        typer.Option("--median-seconds", metavar="S", help="Median of drawn durations (600).", rich_help_panel=_PANEL),
    ] = None
    sigma: Annotated[
        float | None,
        typer.Option(
            "--sigma", metavar="X", help="Deviation of their natural logarithm (1.9).", rich_help_panel=_PANEL
        ),
    ] = None
    warm_up: Annotated[
        float | None,
        typer.Option(
            "--warm-up", metavar="RATIO", help="Share of the time cut from the measures (0.3).", rich_help_panel=_PANEL
        ),
    ] = None
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="ORDER",
            help="backfill: any waiting job that fits may start; fifo: none before the first (backfill).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth", metavar="N", help="Waiting jobs that backfill looks at each time (1000).", rich_help_panel=_PANEL
        ),
    ] = None
    priorities: Annotated[
        str | None,
        typer.Option(
            "--priorities", metavar="on|off", help="Priority and kind order the queue (on).", rich_help_panel=_PANEL
        ),
    ] = None
    preemption: Annotated[
        str | None,
        typer.Option(
            "--preemption", metavar="on|off", help="Lower ranks leave for higher ones (off).", rich_help_panel=_PANEL
        ),
    ] = None
    checkpoint_seconds: Annotated[
        float | None,
        typer.Option(
            "--checkpoint-seconds", metavar="S", help="Jobs save their work this often (never).", rich_help_panel=_PANEL
        ),
    ] = None
    gang_fraction: Annotated[
        float | None,
        typer.Option(
            "--gang-fraction",
            metavar="RATIO",
            help="Share of the jobs of several GPUs that come as gangs (0).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    gang_members: Annotated[
        int | None,
        typer.Option("--gang-members", metavar="N", help="Members of such a gang (2).", rich_help_panel=_PANEL),
    ] = None

    def given(self) -> dict[str, Any]:
        """As the protocol takes them, without those not said. UsageError for a word that is no choice."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, words in (("times", TIMES), ("queue", QUEUES), ("priorities", _SWITCH), ("preemption", _SWITCH)):
            if said[name] is not None:
                choice(f"--{name}", said[name], words)
        for name in ("priorities", "preemption"):
            if said[name] is not None:
                said[name] = said[name] == "on"
        return {name: each for name, each in said.items() if each is not None}
