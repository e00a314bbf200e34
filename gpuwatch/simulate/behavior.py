"""How a workload drives its devices: the few numbers from which all its readings are drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Behavior:
    """Engine activity swings around `engine_mean` by up to `engine_swing`; memory stays near `memory_ratio`."""

    engine_mean: float
    engine_swing: float
    memory_ratio: float

    @property
    def idle(self) -> bool:
        return self.engine_mean == 0.0


BEHAVIORS = {
    "steady_training": Behavior(0.88, 0.08, 0.82),
    "stalling_training": Behavior(0.52, 0.42, 0.70),  # waits for data between steps
    "serving": Behavior(0.38, 0.25, 0.72),
    "light": Behavior(0.08, 0.06, 0.05),  # would do on a far smaller card
    "interactive": Behavior(0.14, 0.50, 0.30),
    "batch": Behavior(0.70, 0.20, 0.50),
    "idle": Behavior(0.0, 0.0, 0.006),
    "loaded_idle": Behavior(0.0, 0.0, 0.78),  # a model is resident and nobody asks it
}

# What a job of each kind does, with weights. The idle shares are set below the published ones on purpose: see
# docs/simulate.md.
BY_KIND: dict[str, tuple[tuple[str, float], ...]] = {
    "training": (("steady_training", 0.66), ("stalling_training", 0.26), ("idle", 0.08)),
    "inference": (("serving", 0.76), ("light", 0.10), ("loaded_idle", 0.14)),
    "interactive": (("interactive", 0.70), ("idle", 0.30)),
    "batch": (("batch", 0.92), ("idle", 0.08)),
    "unknown": (("batch", 0.75), ("serving", 0.17), ("idle", 0.08)),
}
