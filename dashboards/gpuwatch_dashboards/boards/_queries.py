"""Selectors that the fleet's panels share."""

from __future__ import annotations

CLUSTER = 'cluster=~"$cluster"'
# An index cannot be added up, so the daemon sends one per scope; "all" is every model of the pool.
INDEX = f'gpuwatch_fragmentation_index{{{CLUSTER}, pool!="all", gpu_model="all"}}'
NO_DAEMON = "No gpuwatch daemon is scraped"
NO_READING = "No exporter reports this"


def gpus(state: str) -> str:
    """The daemon's count of devices in one state of the waterfall, per pool and model: to be summed."""
    return f'gpuwatch_gpus{{{CLUSTER}, state="{state}"}}'


def recorded(name: str) -> str:
    """One series of the normalized layer."""
    return f"{name}{{{CLUSTER}}}"
