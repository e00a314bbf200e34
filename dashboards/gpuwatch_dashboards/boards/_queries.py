"""Selectors that the fleet's panels share."""

from __future__ import annotations

CLUSTER = 'cluster=~"$cluster"'
# "all" is how the daemon writes a sample about every pool or every model: a sum must take either it or the others.
WHOLE = 'pool="all", gpu_model="all"'
BY_POOL = 'pool!="all", gpu_model="all"'
BY_MODEL = 'pool="all", gpu_model!="all"'
NO_DAEMON = "No gpuwatch daemon is scraped"
NO_READING = "No exporter reports this"


def gpus(state: str, scope: str = WHOLE) -> str:
    """The daemon's count of devices in one state of the waterfall."""
    return f'gpuwatch_gpus{{{CLUSTER}, {scope}, state="{state}"}}'


def recorded(name: str) -> str:
    """One series of the normalized layer."""
    return f"{name}{{{CLUSTER}}}"
