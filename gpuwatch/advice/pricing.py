"""What advice is worth: GPU-hours, cost and energy per week, and the severity that follows. Arithmetic only."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.model.evaluation import Recoverable
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import Severity
from gpuwatch.model.units import WEEK_HOURS

CRITICAL_GPU_HOURS = 8 * WEEK_HOURS  # a whole eight-GPU node for a week
WARNING_GPU_HOURS = 1 * WEEK_HOURS  # one GPU for a week
_SCALE: tuple[Severity, ...] = ("info", "warning", "critical")
_WATTS_PER_KW = 1000


def gpu_hour_price(model: str | None, settings: AnalysisSettings) -> float | None:
    """Price of one GPU-hour of this model, else the default price; None when neither is set."""
    prices = settings.gpu_hour_price
    return prices.get(model or "", prices.get("default"))


def recoverable(
    gpus_by_model: Mapping[str | None, float],
    settings: AnalysisSettings,
    *,
    watts: float | None = None,
    no_watts: str = "no_power_reading",
) -> Recoverable:
    """The worth of giving these GPUs back for a week. `watts`: mean measured power of what would be given back."""
    gpus = sum(gpus_by_model.values())
    costs = [(gpu_hour_price(model, settings), amount) for model, amount in gpus_by_model.items()]
    missing: dict[str, str] = {}
    cost = None
    if any(price is None for price, _ in costs):
        missing["cost"] = "no_price_set"
    else:
        cost = round(sum((price or 0.0) * amount for price, amount in costs) * WEEK_HOURS, 2)
    if watts is None:
        missing["kwh"] = no_watts
    return Recoverable(
        gpus=round(gpus, 3),
        gpu_hours_per_week=round(gpus * WEEK_HOURS, 1),
        cost=cost,
        currency=None if cost is None else settings.currency,
        kwh=None if watts is None else round(watts * WEEK_HOURS / _WATTS_PER_KW, 1),
        missing=missing,
    )


def severity(gpu_hours_per_week: float, *, unlocks: int = 0, lower: int = 0) -> Severity:
    """Steps of GPU-hours per week; one step up when a waiting job would start, `lower` steps down for weaker advice."""
    step = (gpu_hours_per_week >= WARNING_GPU_HOURS) + (gpu_hours_per_week >= CRITICAL_GPU_HOURS)
    step += (unlocks > 0) - lower
    return _SCALE[min(max(step, 0), len(_SCALE) - 1)]
