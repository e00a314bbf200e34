"""The metric families of the Slurm exporter: each is declared once, in a file of `families/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gpuwatch.registry import Registry

CLUSTER_LABEL = "cluster"
_NAME = re.compile(r"gpuwatch_slurm_[a-z][a-z0-9_]*[a-z0-9]")


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric. `labels` come after `cluster`, which the page adds; a family of the exporter itself has no cluster:
    it must be there before the cluster's name is known. `help` is one sentence with the unit's meaning."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    labels: tuple[str, ...] = ()
    scope: Literal["cluster", "exporter"] = "cluster"


class Sample(NamedTuple):
    """One sample: its family, the values of the family's own labels in their order, the number in base units."""

    family: Family
    labels: tuple[str, ...]
    number: float


FAMILIES: Registry[Family] = Registry("Slurm metric family", package="gpuwatch_exporters.slurm.families")


def gauge(name: str, help_: str, *labels: str) -> Family:
    """Declares a gauge of the cluster. A name declared twice is an error at import."""
    return _declare(Family(f"gpuwatch_slurm_{name}", "gauge", help_, labels))


def own_gauge(name: str, help_: str, *labels: str) -> Family:
    """Declares a gauge of the exporter itself."""
    return _declare(Family(f"gpuwatch_slurm_{name}", "gauge", help_, labels, "exporter"))


def own_counter(name: str, help_: str, *labels: str) -> Family:
    """Declares a counter of the exporter itself; its name ends in _total."""
    return _declare(Family(f"gpuwatch_slurm_{name}", "counter", help_, labels, "exporter"))


def _declare(family: Family) -> Family:
    if not _NAME.fullmatch(family.name):
        raise ValueError(f"{family.name!r} is not a metric name of the Slurm exporter")
    if (family.kind == "counter") != family.name.endswith("_total"):
        raise ValueError(f"{family.name}: a counter's name ends in _total, and only a counter's")
    return FAMILIES.register(family.name)(family)
