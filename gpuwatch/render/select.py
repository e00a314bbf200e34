"""Filtering, sorting and grouping of recommendations, the same for the command line and the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuwatch.errors import SettingsError
from gpuwatch.model.evaluation import Recommendation

SEVERITIES = ("info", "warning", "critical")  # rising


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to keep. An empty tuple keeps everything; several values of one field are alternatives."""

    rules: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    gpu_models: tuple[str, ...] = ()
    min_severity: str = "info"


def _worth(item: Recommendation) -> float:
    return item.recoverable.gpu_hours_per_week * item.confidence.value


# Larger first, and None after every number: an unknown cost is not a cost of nothing, but it cannot lead.
SORT_KEYS: dict[str, Callable[[Recommendation], float | None]] = {
    "value": _worth,
    "gpus": lambda item: item.recoverable.gpus,
    "gpu-hours": lambda item: item.recoverable.gpu_hours_per_week,
    "cost": lambda item: item.recoverable.cost,
    "confidence": lambda item: item.confidence.value,
    "severity": lambda item: severity_rank(item.severity) + 1,
}
GROUP_KEYS: dict[str, Callable[[Recommendation], str | None]] = {
    "rule": lambda item: item.rule,
    "tenant": lambda item: item.subject.tenant,
    "pool": lambda item: item.subject.pool,
    "node": lambda item: _node(item),
    "gpu-model": lambda item: item.subject.gpu_model,
    "severity": lambda item: item.severity,
}


@dataclass(frozen=True, slots=True)
class Group:
    """Sums of one group; cost_per_week is None when any member's cost is unknown."""

    name: str | None
    recommendations: int
    worst_severity: str
    gpus: float
    gpu_hours_per_week: float
    cost_per_week: float | None
    currency: str | None


def severity_rank(severity: str) -> int:
    """0 for info, 2 for critical."""
    return SEVERITIES.index(severity)


def at_or_above(items: Iterable[Recommendation], severity: str) -> int:
    """How many items are at least this severe."""
    return sum(severity_rank(item.severity) >= severity_rank(severity) for item in items)


def keep(items: Iterable[Recommendation], wanted: Wanted) -> tuple[Recommendation, ...]:
    """The items that pass every filter, in their order."""
    floor = severity_rank(wanted.min_severity)
    filters: tuple[tuple[tuple[str, ...], Callable[[Recommendation], str | None]], ...] = (
        (wanted.rules, lambda item: item.rule),
        (wanted.pools, lambda item: item.subject.pool),
        (wanted.tenants, lambda item: item.subject.tenant),
        (wanted.nodes, lambda item: _node(item)),
        (wanted.gpu_models, lambda item: item.subject.gpu_model),
    )
    return tuple(
        item
        for item in items
        if severity_rank(item.severity) >= floor and all(not names or read(item) in names for names, read in filters)
    )


def ranked(items: Sequence[Recommendation], key: str | None) -> tuple[Recommendation, ...]:
    """Sorted by a SORT_KEYS id, ties in the given order; None keeps the engine's own ranking."""
    if key is None:
        return tuple(items)
    if key not in SORT_KEYS:
        raise SettingsError(f"cannot sort by {key!r}", todo=f"choose one of: {', '.join(SORT_KEYS)}")
    read = SORT_KEYS[key]
    return tuple(sorted(items, key=lambda item: _descending(read(item))))


def grouped(items: Iterable[Recommendation], key: str) -> tuple[Group, ...]:
    """Groups by a GROUP_KEYS id, most GPU-hours first."""
    if key not in GROUP_KEYS:
        raise SettingsError(f"cannot group by {key!r}", todo=f"choose one of: {', '.join(GROUP_KEYS)}")
    members: dict[str | None, list[Recommendation]] = {}
    for item in items:
        members.setdefault(GROUP_KEYS[key](item), []).append(item)
    groups = [_sum(name, those) for name, those in members.items()]
    return tuple(sorted(groups, key=lambda group: (-group.gpu_hours_per_week, group.name or "")))


def _sum(name: str | None, items: list[Recommendation]) -> Group:
    costs = [item.recoverable.cost for item in items]
    known = [cost for cost in costs if cost is not None]
    return Group(
        name=name,
        recommendations=len(items),
        worst_severity=max((item.severity for item in items), key=severity_rank),
        gpus=sum(item.recoverable.gpus for item in items),
        gpu_hours_per_week=sum(item.recoverable.gpu_hours_per_week for item in items),
        cost_per_week=sum(known) if len(known) == len(costs) else None,
        currency=next((item.recoverable.currency for item in items if item.recoverable.currency), None),
    )


def _descending(amount: float | None) -> tuple[bool, float]:
    return amount is None, -(amount or 0.0)


def _node(item: Recommendation) -> str | None:
    return item.subject.node or (item.subject.name if item.subject.kind == "node" else None)
