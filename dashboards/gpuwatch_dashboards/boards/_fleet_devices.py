"""What the devices report, per model: utilization, memory, heat and power. Reads only the normalized layer."""

from __future__ import annotations

from gpuwatch_dashboards.boards._queries import NO_READING, recorded
from gpuwatch_dashboards.intent import GREEN, ORANGE, RED, Panel, Query, Section, Step
from gpuwatch_dashboards.thresholds import Thresholds

_MODEL = "{{cluster}} {{model}}"


def _by_model(title: str, description: str, unit: str, name: str, steps: tuple[Step, ...], width: int = 12) -> Panel:
    ratio = unit == "percentunit"
    return Panel(
        "timeseries",
        title,
        description,
        unit,
        (Query(recorded(name), _MODEL),),
        NO_READING,
        width=width,
        steps=steps,
        minimum=0 if ratio else None,
        maximum=1 if ratio else None,
    )


def utilization(thresholds: Thresholds) -> Section:
    """Share of time with a kernel running, and memory in use."""
    low = thresholds.number("utilization_low_ratio")
    spread = Panel(
        "timeseries",
        "Utilization of all devices",
        "Share of time with a kernel running: mean, and the values that 10, 50 and 90% of the devices stay below. MIG"
        " devices count by their engines. A wide spread: look for idle-held devices, not for more cards.",
        "percentunit",
        tuple(
            Query(recorded(f"gpuwatch:cluster_utilization:{name}"), f"{{{{cluster}}}} {label}")
            for name, label in (("avg", "mean"), ("p10", "p10"), ("p50", "median"), ("p90", "p90"))
        ),
        NO_READING,
        width=8,
        minimum=0,
        maximum=1,
    )
    return Section(
        "Are the devices busy",
        (
            spread,
            _by_model(
                "Mean utilization by model",
                "Mean share of time with a kernel running, held or free. A model below the line for days: move its"
                " queue to fewer cards, or let small jobs share them.",
                "percentunit",
                "gpuwatch:model_utilization:avg",
                (Step(ORANGE), Step(GREEN, low)),
                width=8,
            ),
            _by_model(
                "Mean memory in use by model",
                "Mean share of device memory in use. Low on large cards: jobs may fit smaller ones, see `gpuwatch"
                " recommend --kind tier_mismatch`. The lines are the alert limits of a single device.",
                "percentunit",
                "gpuwatch:model_memory_used:avg",
                (
                    Step(GREEN),
                    Step(ORANGE, thresholds.number("memory_high_ratio")),
                    Step(RED, thresholds.number("memory_critical_ratio")),
                ),
                width=8,
            ),
        ),
    )


def devices(thresholds: Thresholds) -> Section:
    """Heat and power of the worst device of each model."""
    number = thresholds.number
    hottest = _by_model(
        "Hottest device by model",
        "Temperature of the hottest device of each model. The lines hold only where a card does not tell its slowdown"
        " limit. One device far above its model: check its fan and its slot.",
        "celsius",
        "gpuwatch:model_temperature:celsius_max",
        (
            Step(GREEN),
            Step(ORANGE, number("temperature_hot_celsius")),
            Step(RED, number("temperature_very_hot_celsius")),
        ),
    )
    margin = _by_model(
        "Smallest distance to slowdown by model",
        "Degrees left until the card lowers its clocks, for the worst device of each model. Below the upper line check"
        " the cooling, below the lower stop placing work there.",
        "celsius",
        "gpuwatch:model_temperature_margin:celsius_min",
        (
            Step(RED),
            Step(ORANGE, number("temperature_very_hot_margin_celsius")),
            Step(GREEN, number("temperature_hot_margin_celsius")),
        ),
    )
    power = _by_model(
        "Power by model",
        "Watts that the devices of each model draw together. Compare it with the work done: power without utilization"
        " is an idle device that was not allowed to sleep.",
        "watt",
        "gpuwatch:model_power:watts_sum",
        (Step(GREEN),),
    )
    ratio = Panel(
        "timeseries",
        "Highest power relative to the limit by model",
        "Draw over the enforced limit, for the worst device of each model. Near the lower line is normal under full"
        " load; above the upper the limiter does not hold: check the limit, then the supply.",
        "percentunit",
        (Query(recorded("gpuwatch:model_power:ratio_max"), _MODEL),),
        "No exporter reports power and its limit",
        steps=(Step(GREEN), Step(ORANGE, number("power_near_ratio")), Step(RED, number("power_over_ratio"))),
        minimum=0,
    )
    return Section("Heat and power", (hottest, margin, power, ratio))
