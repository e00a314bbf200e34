"""What the reports of all replay protocols have in common: titles of sizes, cells of a mean, words about seeds."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.model.churn import GANG
from gpuwatch.model.replay import CPU_ONLY, SHARE
from gpuwatch.placement.replay_summary import Spread
from gpuwatch.render.report import Cell, Column

NAMES = (Column("workload", "Workload"), Column("policy", "Policy"))
_SIZE_TITLES = {CPU_ONLY: "CPU only", SHARE: "share", GANG: "gang", "1": "1 GPU"}


def size_title(size: str) -> str:
    """A size of jobs as the header of a column names it."""
    return _SIZE_TITLES.get(size, f"{size} GPUs")


def spread_cells(key: str, measured: Spread | None, factor: float) -> dict[str, Cell]:
    """The mean at `key` and the deviation at `key`_deviation, both times `factor`; {} where nothing was measured."""
    if measured is None:
        return {}
    deviation = measured.deviation
    return {key: factor * measured.mean, f"{key}_deviation": None if deviation is None else factor * deviation}


def over_seeds(seeds: Iterable[int]) -> str:
    """Which runs a number is the mean of; one run is no mean."""
    known = set(seeds)
    if len(known) == 1:
        return f"seed {min(known)}"
    return f"means over {len(known)} seeds ({min(known)} to {max(known)})"
