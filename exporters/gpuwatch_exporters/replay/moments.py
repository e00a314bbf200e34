"""The cluster at one moment of a replay, and who holds what there: what every world hands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch_exporters.replay.holders import Pod

PodsByDevice = Mapping[tuple[int, str | None], list[Pod]]


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster now. `shift_seconds` brings the dates in it to the present."""

    snapshot: ClusterSnapshot
    shift_seconds: int = 0
