"""How the calls went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gpuwatch_exporters.slurm.ask.calls import Call
from gpuwatch_exporters.slurm.ask.errors import REASONS
from gpuwatch_exporters.slurm.families import calls as of
from gpuwatch_exporters.slurm.family import Sample
from gpuwatch_exporters.slurm.records import Node

_NEEDED = ("nodes", "jobs")


def health_samples(calls: Sequence[Call[Any]], source: str, nodes: Sequence[Node] | None) -> Iterator[Sample]:
    """The samples of the exporter itself; they are there whatever Slurm does."""
    good = {call.name: call.records is not None for call in calls}
    yield Sample(of.UP, (), all(good.get(name) for name in _NEEDED))
    unknown: Counter[str] = Counter()
    for call in calls:
        unknown.update(dict.fromkeys(call.unknown.counts, 0))
        unknown.update(call.unknown.counts)
        yield from _call(call)
    for kind, count in sorted(unknown.items()):
        yield Sample(of.UNKNOWN, (kind,), count)
    for schema, release in sorted({call.release[:2] for call in calls if call.release[0]}):
        yield Sample(of.SCHEMA, (source, schema, release), 1)
    if nodes and any(node.gpus for node in nodes):
        yield Sample(of.GPUS_TRACKED, (), any(node.gpus_tracked for node in nodes))


def _call(call: Call[Any]) -> Iterator[Sample]:
    yield Sample(of.CALL_UP, (call.name,), call.records is not None)
    yield Sample(of.CALLS, (call.name,), call.calls)
    yield Sample(of.WAITING, (call.name,), call.pace.backoff_seconds())
    for reason in REASONS:  # all of them from the start: a counter that appears at 1 shows no increase
        yield Sample(of.FAILURES, (call.name, reason), call.failures[reason])
    if call.took_seconds is not None:
        yield Sample(of.DURATION, (call.name,), call.took_seconds)
    if call.success_at is not None:
        yield Sample(of.SUCCESS, (call.name,), call.success_at)
