"""Options of `gpuwatch-exporter dcgm`."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.dcgm.exporter import DcgmExporter
from gpuwatch_exporters.dcgm.health import TOPIC as HEALTH
from gpuwatch_exporters.dcgm.settings import DAY_SECONDS, DEFAULT_ADDRESS, SOCKET_PREFIX, Settings
from gpuwatch_exporters.dcgm.topics import TOPICS
from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.holders import add_holder_arguments, holder_settings
from gpuwatch_exporters.serving import add_serving_arguments
from gpuwatch_exporters.serving import run as serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this exporter, of who holds the devices, and of serving."""
    group = parser.add_argument_group("what is read")
    group.add_argument(
        "--node-name", default=os.environ.get("NODE_NAME") or platform.node(), metavar="NAME",
        help="the label node (default: the variable NODE_NAME, else the host's name: %(default)s)",
    )  # fmt: skip
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
    group.add_argument(
        "--compat", action="append", default=[], metavar="NAME",
        help=f"also print another exporter's names; may be repeated. One of: {', '.join(COMPATS.ids())}",
    )  # fmt: skip
    group.add_argument(
        "--state-file", type=Path, default=_default_state_file(), metavar="FILE",
        help="remembers the node's GPUs over a restart, so that a lost one is missed "
        "(default: dcgm.json in systemd's STATE_DIRECTORY, else none)",
    )  # fmt: skip
    group.add_argument(
        "--forget-after", type=float, default=30.0, metavar="DAYS",
        help="a missing GPU is missed for so long; 0: until another one sits in its slot (default %(default)s)",
    )  # fmt: skip
    group.add_argument("--path.sysfs", type=Path, default=Path("/sys"), metavar="DIR", help="default %(default)s")
    add_holder_arguments(parser)
    add_serving_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until told to stop. SettingsError for options that make no sense, and when DCGM is not here."""
    return serve(DcgmExporter(settings_of(options), holder_settings(options)), options)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of parsed options. SettingsError for an unknown name or an address that is none."""
    _known("--disable", options.disable, [*TOPICS, HEALTH])
    _known("--compat", options.compat, COMPATS.ids())
    if not options.node_name:
        raise SettingsError("the node has no name", todo="give --node-name")
    if not options.forget_after >= 0:  # nan is below nothing
        raise SettingsError(f"--forget-after {options.forget_after:g} is no time", todo="0 means never by time alone")
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
        forget_seconds=options.forget_after * DAY_SECONDS or None,
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


def _known(option: str, names: list[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise SettingsError(f"{option} {name}: there is none of this name", todo=f"choose of: {', '.join(known)}")


def _default_state_file() -> Path | None:
    folder = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(folder) / "dcgm.json" if folder else None
