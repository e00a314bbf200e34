"""Finds the Python bindings that NVIDIA installs with DCGM. They are on no package index and in no one's path."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from gpuwatch.errors import SettingsError

# DCGM 4, DCGM 2 and 3, and where some images put them.
PLACES = (
    Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),
    Path("/usr/local/dcgm/bindings/python3"),
    Path("/usr/local/dcgm/bindings"),
)
_MODULE = "dcgm_agent"


@dataclass(frozen=True, slots=True)
class Bindings:
    """The modules of the bindings: functions, structures with error codes, and the folder that they came from."""

    agent: ModuleType
    structs: ModuleType
    folder: Path


def find(folder: Path | None = None) -> Bindings:
    """Imports the bindings from `folder`, else from the first usual place that has them.

    SettingsError when there are none or when they cannot be imported.
    """
    places = (folder,) if folder is not None else PLACES
    for place in places:
        if (place / f"{_MODULE}.py").is_file():
            return _load(place)
    raise SettingsError(
        "the Python bindings of DCGM are not here",
        tried=", ".join(str(place) for place in places),
        todo="install datacenter-gpu-manager-4-core, or give their folder with --bindings; without DCGM use "
        "gpuwatch-exporter nvml",
    )


def open_library(bindings: Bindings, folder: Path | None) -> None:
    """Loads libdcgm, from `folder` where one is given. SettingsError when it is not found."""
    try:
        bindings.structs._dcgmInit(None if folder is None else str(folder))
        bindings.agent.dcgmInit()
    except bindings.structs.DCGMError as err:
        raise SettingsError(
            f"the library of DCGM cannot be used: {err}",
            tried=f"libdcgm in {folder or 'the places where the system keeps libraries'}",
            todo="install datacenter-gpu-manager-4-core, or give the library's folder with --library",
        ) from err


def _load(place: Path) -> Bindings:
    # The modules import one another by their bare names, so their folder has to be in the path and stay there.
    if str(place) not in sys.path:
        sys.path.append(str(place))
    try:
        agent, structs = importlib.import_module(_MODULE), importlib.import_module("dcgm_structs")
    except Exception as err:  # they are code of another project: a SyntaxError of an old one is a fault like others
        raise SettingsError(
            f"the Python bindings of DCGM in {place} cannot be imported: {type(err).__name__}: {err}",
            tried=f"import {_MODULE}",
            todo="install the bindings of the DCGM that runs here",
        ) from err
    return Bindings(agent, structs, place)
