"""Options of `gpuwatch-exporter slurm`."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.serving import add_serving_arguments
from gpuwatch_exporters.serving import run as serve
from gpuwatch_exporters.slurm.ask.commands import Commands
from gpuwatch_exporters.slurm.ask.rest import Rest
from gpuwatch_exporters.slurm.ask.source import Source
from gpuwatch_exporters.slurm.count.single import Wanted
from gpuwatch_exporters.slurm.exporter import Settings, SlurmExporter

INTERVAL_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this exporter and of serving."""
    _add_asking(parser.add_argument_group("how Slurm is asked"))
    _add_telling(parser.add_argument_group("what is told"))
    add_serving_arguments(parser, interval_seconds=INTERVAL_SECONDS)


def run(options: argparse.Namespace) -> int:
    """Serves until told to stop. SettingsError for options that make no sense."""
    return serve(SlurmExporter(source_of(options), settings_of(options)), options)


def source_of(options: argparse.Namespace) -> Source:
    """slurmrestd where an address is given, else the commands."""
    if options.rest_url:
        if options.slurm_bin:
            raise SettingsError("--slurm-bin means nothing with --rest-url", todo="give one of them")
        return Rest(
            options.rest_url, token_file=options.token_file, user=options.rest_user, version=options.rest_version
        )
    for name in ("token_file", "rest_user", "rest_version"):
        if getattr(options, name):
            raise SettingsError(f"--{name.replace('_', '-')} means nothing without --rest-url")
    if options.slurm_bin and not options.slurm_bin.is_dir():
        raise SettingsError(f"{options.slurm_bin} is no folder", todo="--slurm-bin names the folder of squeue")
    return Commands(options.slurm_bin)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of parsed options."""
    return Settings(
        timeout_seconds=options.timeout,
        min_call_seconds=options.min_call_seconds,
        cluster=options.cluster,
        without=tuple(dict.fromkeys(options.without)),
        per_user=options.per_user,
        most_tenants=options.max_tenants,
        single=Wanted(options.per_node, options.per_gpu, options.per_job, options.max_series),
    )


def _add_asking(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--slurm-bin", type=Path, metavar="DIR", help="folder of squeue, scontrol and sinfo (default: the path)"
    )
    group.add_argument(
        "--rest-url", default="", metavar="URL",
        help="ask slurmrestd instead of the commands: unix:/path, http://host:port or https://host:port",
    )  # fmt: skip
    group.add_argument(
        "--token-file", type=Path, metavar="FILE",
        help="token for slurmrestd, read anew for each call (default: the variable SLURM_JWT)",
    )  # fmt: skip
    group.add_argument("--rest-user", default="", metavar="NAME", help="user of the token, where a proxy needs it")
    group.add_argument(
        "--rest-version", default="", metavar="vX.Y.Z", help="of slurmrestd's interface (default: the newest offered)"
    )
    group.add_argument(
        "--timeout", type=_seconds, default=20.0, metavar="SECONDS",
        help="of one call; the command is killed then (default: %(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--min-call-seconds", type=_seconds, default=15.0, metavar="SECONDS",
        help="a call is never made more often, whatever --interval says (default: %(default)g)",
    )  # fmt: skip


def _add_telling(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--cluster", default="", metavar="NAME", help="the label cluster (default: what Slurm says)")
    group.add_argument(
        "--without", action="append", default=[], choices=("partitions", "reservations"), metavar="CALL",
        help="a call that is not made, partitions or reservations; may be repeated",
    )  # fmt: skip
    group.add_argument("--per-user", action="store_true", help="also tell jobs and GPUs of each user")
    group.add_argument("--per-node", action="store_true", help="also tell each node")
    group.add_argument("--per-gpu", action="store_true", help="also tell which GPUs of each node are in use")
    group.add_argument(
        "--per-job", action="store_true", help="also tell each job; its series end with it, which is costly to store"
    )
    group.add_argument(
        "--max-tenants", type=_count, default=500, metavar="N",
        help="accounts and users with names of their own; the others are told as (other) (default: %(default)d)",
    )  # fmt: skip
    group.add_argument(
        "--max-series", type=_count, default=50_000, metavar="N",
        help="most series of single nodes, GPUs and jobs; more are left out and counted (default: %(default)d)",
    )  # fmt: skip


def _seconds(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1
    if not 0.1 <= amount <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return amount


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)
