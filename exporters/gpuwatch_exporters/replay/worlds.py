"""What is replayed: a world gives its cluster at any moment, and dresses one node at a time with readings."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

from gpuwatch.errors import MissingExtraError
from gpuwatch.model.cluster import Node
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.simulate.cluster import advance, simulate
from gpuwatch_exporters.replay.moments import Moment, PodsByDevice


class World(Protocol):
    """One thing to replay."""

    kind: str  # generated | snapshot | trace
    told: str  # one line for people

    def at(self, now: datetime) -> Moment:
        """The cluster at `now`. Gives the same snapshot object while nothing has changed."""
        ...

    def dress(self, node: Node, pods: PodsByDevice, now: datetime) -> Node:
        """`node` with the readings it has at `now`."""
        ...


class GeneratedWorld:
    """The generated cluster from `start` on. speed: simulated seconds per second; 0 stands still."""

    kind = "generated"

    def __init__(self, start: datetime, seed: int = 7, scale: int = 1, speed: float = 1.0) -> None:
        self._start, self._speed = start, speed
        self._first = simulate(seed, start, scale)
        self.told = f"generated cluster, seed {seed}, scale {scale}, speed {speed:g}"

    def at(self, now: datetime) -> Moment:
        if self._speed == 0:
            return Moment(self._first.snapshot)
        passed = (now - self._start).total_seconds()
        snapshot = advance(self._first, passed * self._speed).snapshot
        return Moment(snapshot, shift_seconds=round((now - snapshot.taken_at).total_seconds()))

    def dress(self, node: Node, pods: PodsByDevice, now: datetime) -> Node:
        return node


class SnapshotWorld:
    """A snapshot file, standing still. Readings that it does not hold are not served."""

    kind = "snapshot"

    def __init__(self, path: Path, start: datetime) -> None:
        from gpuwatch.model.codec import read_snapshot

        try:
            snapshot = read_snapshot(path)
        except ModuleNotFoundError as err:
            raise _missing("--snapshot", err, "cli") from err
        self._moment = Moment(snapshot, shift_seconds=round((start - snapshot.taken_at).total_seconds()))
        self.told = f"snapshot {path}"

    def at(self, now: datetime) -> Moment:
        return self._moment

    def dress(self, node: Node, pods: PodsByDevice, now: datetime) -> Node:
        return node


def trace_world(start: datetime, **options: object) -> World:
    """A TraceWorld; what it needs beyond the base installation is told in one line when it is missing."""
    try:
        from gpuwatch_exporters.replay.trace_world import TraceWorld
    except ModuleNotFoundError as err:
        raise _missing("--trace", err, "analytics") from err
    return TraceWorld(start, **options)  # type: ignore[arg-type]


def _missing(option: str, err: ModuleNotFoundError, extra: str) -> Exception:
    if err.name is not None and err.name.split(".")[0] == "gpuwatch":
        return err  # ours: a broken installation, not a missing extra
    return MissingExtraError(f"{option} needs {err.name}", todo=f"pip install 'gpuwatch-stack[{extra}]'")


def first_nodes(snapshot: ClusterSnapshot, count: int | None) -> tuple[Node, ...]:
    """The first `count` nodes (all when None)."""
    return snapshot.nodes if count is None else snapshot.nodes[:count]
