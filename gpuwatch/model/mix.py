"""The demand mix: which shapes are asked for, with shares that sum to 1."""

from __future__ import annotations

from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.values import value


@value
class ShapeShare:
    """One shape and its share of all members counted, 0..1."""

    shape: DemandShape
    share_ratio: float


@value
class DemandMix:
    """Shapes by share, largest first; shares sum to 1 unless the mix is empty.

    coverage_ratio: share of the counted members that the kept shapes cover, before renormalizing; None when empty.
    """

    shapes: tuple[ShapeShare, ...] = ()
    basis: str = ""
    coverage_ratio: float | None = None
