"""Several doors to one cluster: the first that gives a whole answer is used, the others stand by."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpuwatch.errors import GpuwatchError
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth
from gpuwatch.sources.base import Source

log = logging.getLogger("gpuwatch.sources")


@dataclass(frozen=True, slots=True)
class Answer:
    """What asking gave. source and snapshot are both None when no door answered; `error` is then the first cause."""

    source: Source | None
    snapshot: ClusterSnapshot | None
    health: tuple[SourceHealth, ...]
    error: Exception | None = None


def read_first(sources: Sequence[Source], now: datetime) -> Answer:
    """Asks in order until one answers. Never raises: a door that breaks in any way has failed, with its cause."""
    failed: list[SourceHealth] = []
    first: Exception | None = None
    for source in sources:
        try:
            snapshot = source.read(now)
        except Exception as err:
            log.warning("source %s: %s", source.name, err)
            failed.append(_failure(source, err))
            first = first or err
            continue
        told = any(each.name == source.name for each in snapshot.sources)
        own = SourceHealth(name=source.name, kind=_kind(source), ok=True, observed_at=snapshot.taken_at)
        return Answer(source, snapshot, (*failed, *(() if told else (own,)), *snapshot.sources))
    return Answer(None, None, tuple(failed), first)


def _failure(source: Source, err: Exception) -> SourceHealth:
    known = isinstance(err, GpuwatchError)
    cause = err.code if isinstance(err, GpuwatchError) else type(err).__name__
    detail = str(err) if known else f"{type(err).__name__}: {err}"
    return SourceHealth(name=source.name, kind=_kind(source), ok=False, cause=cause, detail=detail)


def _kind(source: Source) -> str:
    """The kind as its name tells it: "prometheus:...", "file:...", "trace:...", "generated:..."."""
    return source.name.split(":", 1)[0]
