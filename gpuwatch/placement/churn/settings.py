"""What a person may choose about a run with churn, and what is refused."""

from __future__ import annotations

from typing import Literal

from gpuwatch.errors import SettingsError
from gpuwatch.model.values import value

# drawn: arrivals and durations; durations: only arrivals are drawn, at a load; trace: neither.
TIMES = ("drawn", "durations", "trace")
QUEUES = ("backfill", "fifo")
DEFAULT_LOAD = 0.9
DEFAULT_TURNOVERS = 6.0
_BOUNDS: dict[str, tuple[float, float]] = {
    "load": (0.001, 10.0),
    "turnovers": (0.01, 1000.0),
    "warm_up": (0.0, 0.9),
    "median_seconds": (0.1, 1e8),
    "sigma": (0.0, 4.0),
    "depth": (1, 1_000_000),
    "checkpoint_seconds": (0.0, 1e8),
    "gang_fraction": (0.0, 1.0),
    "gang_members": (2, 64),
}


@value
class ChurnSettings:
    """Defaults of the durations: jobs of the openb default list that were scheduled show a median of 616 s and a
    deviation of the logarithm of 1.88."""

    times: Literal["drawn", "durations", "trace"] = "drawn"
    load: float | None = None  # offered GPU time / capacity, for drawn arrivals; None: 0.9
    turnovers: float | None = None  # drawn arrivals span this many mean durations; None: 6
    median_seconds: float = 600.0
    sigma: float = 1.9
    warm_up: float = 0.3  # share of the span that is cut from the steady measures
    queue: Literal["backfill", "fifo"] = "backfill"
    depth: int = 1000  # waiting jobs that fit nowhere and are looked at before a look at the queue ends
    priorities: bool = True  # priority and kind of jobs order the queue
    preemption: bool = False
    checkpoint_seconds: float = 0.0  # running jobs save their work this often; 0: never
    gang_fraction: float = 0.0  # of the jobs of several devices, this share becomes gangs
    gang_members: int = 2

    def __post_init__(self) -> None:
        for name, choices in (("times", TIMES), ("queue", QUEUES)):
            if getattr(self, name) not in choices:
                raise SettingsError(f"{name} is {getattr(self, name)!r}", todo=f"choose one of: {', '.join(choices)}")
        for name, (low, high) in _BOUNDS.items():
            amount = getattr(self, name)
            if amount is not None and not low <= amount <= high:
                raise SettingsError(f"{name} is {amount:g}, outside {low:g}..{high:g}", todo="choose a value within")
        for name in ("load", "turnovers"):
            if self.times == "trace" and getattr(self, name) is not None:
                raise SettingsError(
                    f"{name} does nothing with arrivals taken from the trace",
                    todo="leave it out, or draw the arrivals: --times durations",
                )
        if self.preemption and not self.priorities:
            raise SettingsError("preemption needs priorities: no job stands above another", todo="leave one out")
