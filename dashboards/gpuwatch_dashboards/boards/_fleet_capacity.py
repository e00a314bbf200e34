"""Where the capacity is, what it can take, and what is coming."""

from __future__ import annotations

from gpuwatch_dashboards.boards._queries import CLUSTER, INDEX, NO_DAEMON, gpus
from gpuwatch_dashboards.intent import GREEN, ORANGE, RED, Panel, Query, Section, Step
from gpuwatch_dashboards.thresholds import Thresholds

_PARTS = "active|idle_held|activity_unknown|free|blocked"
_COLUMNS = ("installed", "schedulable", "allocated", "active", "idle_held", "free", "stranded")
_DEMAND = f"sum by (cluster) (gpuwatch_demand_gpus{{{CLUSTER}}})"


def _forecast(horizons: str, shift: str = "") -> str:
    wanted = f'{CLUSTER}, kind="all", horizon=~"{horizons}", forecast_quantile=~"0.1|mean|0.9"'
    return f"sum by (cluster, horizon, forecast_quantile) (gpuwatch_forecast_gpus{{{wanted}}}{shift})"


def capacity() -> Section:
    """The waterfall over time, per pool and per model."""
    waterfall = Panel(
        "timeseries",
        "Allocation waterfall",
        "Installed devices by what becomes of them; the parts add up to all installed. A growing idle-held part is the"
        " cheapest capacity to win back; activity unknown means that nobody measures those devices.",
        "short",
        (
            Query(
                f'sum by (cluster, state) (gpuwatch_gpus{{{CLUSTER}, state=~"{_PARTS}"}})',
                "{{cluster}} {{state}}",
            ),
        ),
        NO_DAEMON,
        width=24,
        height=9,
        stacked=True,
        minimum=0,
    )
    pools = Panel(
        "table",
        "Pools",
        "The same counts per pool, in GPUs, with the fragmentation index (0 to 100). Stranded is free capacity that the"
        " usual jobs cannot take. An empty index means that nothing is free.",
        "short",
        (
            *(Query(f"sum by (cluster, pool) ({gpus(state)})", state) for state in _COLUMNS),
            Query(f"max by (cluster, pool) ({INDEX})", "index"),
        ),
        NO_DAEMON,
        width=24,
        key_columns=("cluster", "pool"),
    )
    held = Panel(
        "bargauge",
        "Idle-held GPUs by model",
        "Devices held without measured work, per model. Start with the dearest cards: `gpuwatch recommend`"
        " names the jobs.",
        "short",
        (Query(f"sum by (cluster, gpu_model) ({gpus('idle_held')})", "{{cluster}} {{gpu_model}}"),),
        NO_DAEMON,
        minimum=0,
    )
    blocked = Panel(
        "bargauge",
        "Blocked GPUs by cause",
        "Installed devices that cannot be scheduled, each charged to one cause. Repair or uncordon the largest"
        " group first.",
        "short",
        (
            Query(
                f"sum by (cluster, cause) (gpuwatch_blocked_gpus{{{CLUSTER}}})",
                "{{cluster}} {{cause}}",
            ),
        ),
        "Nothing is blocked",
        minimum=0,
    )
    return Section("Where the capacity is", (waterfall, pools, held, blocked))


def fragmentation(thresholds: Thresholds) -> Section:
    """Whether the next job can be placed."""
    clear, high = thresholds.number("fragmentation_clear_index"), thresholds.number("fragmentation_high_index")
    index = Panel(
        "timeseries",
        "Fragmentation index by pool",
        "Free GPUs of 100 that the usual jobs cannot take. Above the upper line with work waiting an alert"
        " starts, below"
        " the lower it ends. `gpuwatch fragmentation` names the causes. No line: nothing is free.",
        "none",
        (
            Query(
                f"max by (cluster, pool) ({INDEX})",
                "{{cluster}} {{pool}}",
            ),
        ),
        "Nothing is free, or no daemon is scraped",
        steps=(Step(GREEN), Step(ORANGE, clear), Step(RED, high)),
        minimum=0,
        maximum=100,
    )
    causes = Panel(
        "timeseries",
        "Stranded GPUs by cause",
        "Free capacity in GPUs that the demand cannot take, by cause: too few devices left, CPU or memory gone"
        " first, or"
        " no access. CPU causes ask for smaller CPU requests, device causes for consolidation.",
        "short",
        (
            Query(
                f"sum by (cluster, cause) (gpuwatch_stranded_milligpu{{{CLUSTER}}}) / 1000",
                "{{cluster}} {{cause}}",
            ),
        ),
        NO_DAEMON,
        stacked=True,
        minimum=0,
    )
    waiting = Panel(
        "timeseries",
        "Waiting GPUs by pool",
        "GPUs that jobs wait for; pool * is work that names no pool. Waiting beside free capacity is the loss that"
        " consolidation or a smaller request would win back.",
        "short",
        (Query(f"sum by (cluster, pool) (gpuwatch_pending_gpus{{{CLUSTER}}})", "{{cluster}} {{pool}}"),),
        "Nothing runs or waits",
        minimum=0,
    )
    shapes = Panel(
        "bargauge",
        "Members of the usual shapes that fit now",
        "How many jobs of each common shape could start now, one shape at a time, the 20 scarcest. 0 in a common shape:"
        " use `gpuwatch place` to see what blocks it.",
        "short",
        (
            Query(
                f'bottomk(20, min by (cluster, shape) (gpuwatch_shape_fits{{{CLUSTER}, pool="all"}}))',
                "{{cluster}} {{shape}}",
            ),
        ),
        "No demand is known",
        steps=(Step(RED), Step(GREEN, 1)),
        minimum=0,
    )
    return Section("Can the next job be placed", (index, causes, waiting, shapes))


def demand() -> Section:
    """Demand against capacity, the forecast, and how far it can be trusted."""
    band = Panel(
        "timeseries",
        "Demand now, demand ahead and capacity",
        "GPUs running or waiting now, the forecast for 6 and 24 hours later (mean and 80% band) and the schedulable"
        " GPUs. Ends of the band are added over pools, which makes it wide on purpose. Band above capacity: free or add"
        " devices.",
        "short",
        (
            Query(_DEMAND, "{{cluster}} demand now"),
            Query(_forecast("6h|24h"), "{{cluster}} in {{horizon}}, {{forecast_quantile}}"),
            Query(f"sum by (cluster) ({gpus('schedulable')})", "{{cluster}} capacity"),
        ),
        "Nothing runs or waits, and there is too little history",
        width=24,
        height=9,
        minimum=0,
    )
    kept = Panel(
        "timeseries",
        "Demand and what was forecast for it",
        "The demand and the forecast that was made for this hour 6 hours earlier (stated window: 6 h back). Demand"
        " outside the band more than one hour in five: trust the forecast less and size by hand.",
        "short",
        (
            Query(_DEMAND, "{{cluster}} demand"),
            Query(_forecast("6h", " offset 6h"), "{{cluster}} forecast {{horizon}} before, {{forecast_quantile}}"),
        ),
        "No forecast is six hours old yet",
        minimum=0,
    )
    skill = Panel(
        "timeseries",
        "Forecast skill by pool",
        "1 minus the error over the error of repeating yesterday, on hours that the model had not seen. Below 0 the"
        " forecast is worse than yesterday's curve: do not plan with it.",
        "percentunit",
        (
            Query(
                f'min by (cluster, pool) (gpuwatch_forecast_skill_ratio{{{CLUSTER}, kind="all"}})',
                "{{cluster}} {{pool}}",
            ),
        ),
        "Too little history for a forecast",
        steps=(Step(RED), Step(GREEN, 0.0)),
        maximum=1,
    )
    return Section("What is coming", (band, kept, skill))
