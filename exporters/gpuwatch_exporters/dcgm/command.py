"""Options of `gpuwatch-exporter dcgm`."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.dcgm.exporter import DcgmExporter
from gpuwatch_exporters.dcgm.health import TOPIC as HEALTH
from gpuwatch_exporters.dcgm.settings import DEFAULT_ADDRESS, SOCKET_PREFIX, Settings
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.device.options import (
    add_device_arguments,
    check_device_options,
    check_known,
    forget_seconds,
)
from gpuwatch_exporters.holders import add_holder_arguments, holder_settings
from gpuwatch_exporters.serving import add_serving_arguments
from gpuwatch_exporters.serving import run as serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this exporter, of who holds the devices, and of serving."""
    group = parser.add_argument_group("what is read")
    add_device_arguments(group, "dcgm.json")
    group.add_argument(
        "--hostengine", default=DEFAULT_ADDRESS, metavar="HOST:PORT|unix:PATH",
        help="where nv-hostengine listens (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--embedded", action="store_true",
        help="run a host engine in this process: it opens the devices and needs DCGM's rights",
    )  # fmt: skip
    group.add_argument(
        "--bindings", type=Path, metavar="DIR", help="folder of DCGM's Python bindings (default: the usual places)"
    )
    group.add_argument("--library", type=Path, metavar="DIR", help="folder of libdcgm (default: the system's)")
    group.add_argument(
        "--disable", action="append", default=[], metavar="TOPIC",
        help=f"a topic that is not watched; may be repeated. One of: {', '.join((*TOPICS, HEALTH))}",
    )  # fmt: skip
    add_holder_arguments(parser)
    add_serving_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until told to stop. SettingsError for options that make no sense, and when DCGM is not here."""
    return serve(DcgmExporter(settings_of(options), holder_settings(options)), options)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of parsed options. SettingsError for an unknown name or an address that is none."""
    if options.embedded and options.hostengine != DEFAULT_ADDRESS:
        raise SettingsError("--hostengine means nothing with --embedded", todo="give one of them")
    check_known("--disable", options.disable, [*TOPICS, HEALTH])
    check_device_options(options)
    return Settings(
        node=options.node_name,
        hostengine=_address(options.hostengine),
        embedded=options.embedded,
        bindings=options.bindings,
        library=options.library,
        interval=options.interval,
        disabled=frozenset(options.disable),
        compats=tuple(dict.fromkeys(options.compat)),
        sysfs=vars(options)["path.sysfs"],
        state_file=options.state_file,
        forget_seconds=forget_seconds(options),
    )


def _address(text: str) -> str:
    """HOST:PORT or unix:PATH. DCGM reads HOST alone with its own port, so a port that is no number is told here."""
    if text.startswith(SOCKET_PREFIX):
        if len(text) > len(SOCKET_PREFIX):
            return text
    else:
        host, colon, port = text.rpartition(":")
        if host and colon and port.isdecimal() and 0 < int(port) < 65536:
            return text
    raise SettingsError(f"--hostengine {text}: not HOST:PORT nor unix:PATH", todo=f"for example {DEFAULT_ADDRESS}")
