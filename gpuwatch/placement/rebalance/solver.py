"""An integer program in the making, and its solution by HiGHS, by way of scipy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
from scipy.sparse import coo_array  # type: ignore[import-untyped]

_MOST_BRANCHES = 1000
_GAP = 1e-4  # of the whole value: thousandths of a device, less than what rounding does to it
Terms = dict[int, float]  # weight by variable


@dataclass(slots=True)
class Model:
    """Variables by position, constraints low <= terms <= high; maximizes."""

    gain: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)

    def variable(self, upper: float, gain: float = 0.0, whole: bool = True) -> int:
        """A new variable of 0..upper; its position."""
        self.gain.append(gain)
        self.upper.append(upper)
        self.whole.append(int(whole))
        return len(self.gain) - 1

    def bound(self, terms: Terms, low: float, high: float) -> None:
        """low <= sum of weight * variable <= high."""
        self.rows.append((terms, low, high))


def run(model: Model, seconds: float) -> tuple[list[int], float] | None:
    """(value of each variable, rounded; the gain), or None where the bounds on the work were reached first."""
    entries = [(at, v, w) for at, (terms, _, _) in enumerate(model.rows) for v, w in terms.items()]
    data = np.array([w for _, _, w in entries])
    matrix = coo_array(
        (data, (np.array([a for a, _, _ in entries]), np.array([v for _, v, _ in entries]))),
        shape=(len(model.rows), len(model.gain)),
    ).tocsr()
    answer = milp(
        -np.array(model.gain),
        integrality=np.array(model.whole),
        bounds=Bounds(0, np.array(model.upper)),
        constraints=LinearConstraint(matrix, [low for _, low, _ in model.rows], [high for _, _, high in model.rows]),
        options={"time_limit": seconds, "mip_rel_gap": _GAP, "node_limit": _MOST_BRANCHES},
    )
    if answer.status != 0 or answer.x is None:
        return None
    return [round(amount) for amount in answer.x], -float(answer.fun)
