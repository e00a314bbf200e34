"""The options that every served exporter has: where, how often, as a file or over HTTP."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DEFAULT_PORT = 9437
LOG_LEVELS = ("debug", "info", "warning", "error")


class Listen(NamedTuple):
    """Where to listen: host "" is every address of the machine, port 0 any free one."""

    host: str
    port: int

    def told(self) -> str:
        """HOST:PORT as a URL spells it."""
        host = self.host or "0.0.0.0"
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def add_serving_arguments(parser: argparse.ArgumentParser, *, interval_seconds: float = 10.0) -> None:
    """Declares the options of the serving room. Each of them, and each that the caller adds, may also come from the
    environment or the file of --config (see `outside.fill_defaults`).

    A node exporter is scraped from another machine, so it listens on every address unless told else.
    """
    # An option that may stand in a file has one spelling; a shortened one would be read past by who looks for --config.
    parser.allow_abbrev = False
    group = parser.add_argument_group("how it is served")
    group.add_argument(
        "--listen", type=listen_address, default=Listen("", DEFAULT_PORT), metavar="[HOST]:PORT|off",
        help=f"default: :{DEFAULT_PORT}, every address of the machine; port 0 takes any free one; off: no HTTP",
    )  # fmt: skip
    group.add_argument(
        "--interval", type=seconds, default=interval_seconds, metavar="SECONDS",
        help="time between two cycles (default: %(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--web.config.file", type=Path, dest="web_config_file", metavar="FILE",
        help="TLS, client certificates and passwords, in the web configuration format that exporters share",
    )  # fmt: skip
    group.add_argument(
        "--textfile", type=Path, metavar="FILE",
        help="also write the page to this file after each cycle, for node_exporter (name it something.prom)",
    )  # fmt: skip
    group.add_argument(
        "--once", action="store_true", help="one cycle, to --textfile or to standard output, then exit (for cron)"
    )
    group.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="default: info")
    group.add_argument(
        "--config", type=Path, metavar="FILE",
        help="TOML file of options, without their dashes; a flag wins over the environment variable "
        "GPUWATCH_EXPORTER_OPTION_NAME, which wins over the file",
    )  # fmt: skip


def listen_address(text: str) -> Listen | None:
    """[HOST]:PORT, with an IPv6 host in brackets; None for "off"."""
    if text == "off":
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST]:PORT, for example :{DEFAULT_PORT}, nor off")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise argparse.ArgumentTypeError(f"{text!r}: an IPv6 host stands in brackets, as in [::1]:{DEFAULT_PORT}")
    return Listen(host, int(port))


def seconds(text: str) -> float:
    """A time from 0.1 s up to a day."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0.1 <= amount <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 86400")
    return amount


def long_options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options that may come from outside, by their first long name without dashes."""
    actions: Sequence[argparse.Action] = parser._actions
    skipped = (argparse._HelpAction, argparse._VersionAction)
    out: dict[str, argparse.Action] = {}
    for each in actions:
        name = next((spelled for spelled in each.option_strings if spelled.startswith("--")), None)
        if name is not None and not isinstance(each, skipped):
            out[name.removeprefix("--")] = each
    return out
