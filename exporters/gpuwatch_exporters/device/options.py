"""Options that each exporter of devices has, whatever it reads them with."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Collection, Iterable
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.device.compat import COMPATS

_DAY_SECONDS = 86400.0


def add_device_arguments(group: argparse._ArgumentGroup, state_name: str) -> None:
    """Declares them. state_name: of the file of remembered GPUs in systemd's folder."""
    group.add_argument(
        "--node-name", default=os.environ.get("NODE_NAME") or platform.node(), metavar="NAME",
        help="the label node (default: the variable NODE_NAME, else the host's name: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--compat", action="append", default=[], metavar="NAME",
        help=f"also print another exporter's names; may be repeated. One of: {', '.join(COMPATS.ids())}",
    )  # fmt: skip
    group.add_argument(
        "--state-file", type=Path, default=_default_state_file(state_name), metavar="FILE",
        help="remembers the node's GPUs over a restart, so that a lost one is missed "
        f"(default: {state_name} in systemd's STATE_DIRECTORY, else none)",
    )  # fmt: skip
    group.add_argument(
        "--forget-after", type=float, default=30.0, metavar="DAYS",
        help="a missing GPU is missed for so long; 0: until another one sits in its slot (default %(default)s)",
    )  # fmt: skip
    group.add_argument("--path.sysfs", type=Path, default=Path("/sys"), metavar="DIR", help="default %(default)s")


def check_device_options(options: argparse.Namespace) -> None:
    """SettingsError for values of these options that make no sense."""
    check_known("--compat", options.compat, COMPATS.ids())
    if not options.node_name:
        raise SettingsError("the node has no name", todo="give --node-name")
    if not options.forget_after >= 0:  # nan is below nothing
        raise SettingsError(f"--forget-after {options.forget_after:g} is no time", todo="0 means never by time alone")


def check_known(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """SettingsError for a name that is not known."""
    for name in names:
        if name not in known:
            raise SettingsError(f"{option} {name}: there is none of this name", todo=f"choose of: {', '.join(known)}")


def forget_seconds(options: argparse.Namespace) -> float | None:
    """How long a missing GPU is remembered; None: by no time alone."""
    return options.forget_after * _DAY_SECONDS or None


def _default_state_file(name: str) -> Path | None:
    folder = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(folder) / name if folder else None
