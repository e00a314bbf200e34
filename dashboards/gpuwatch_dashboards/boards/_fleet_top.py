"""The first screen of the fleet board, and its last sections: advice and trust in the data."""

from __future__ import annotations

from gpuwatch_dashboards.boards._queries import CLUSTER, NO_DAEMON, NO_READING, gpus, recorded
from gpuwatch_dashboards.intent import GREEN, NEUTRAL, ORANGE, RED, Panel, Query, Section, Step
from gpuwatch_dashboards.thresholds import Thresholds

_ANY_IS_ODD = (Step(GREEN), Step(ORANGE, 1))


def _tile(
    title: str, description: str, unit: str, expr: str, no_value: str, steps: tuple[Step, ...] = (Step(NEUTRAL),)
) -> Panel:
    ratio = unit == "percentunit"
    return Panel(
        "stat",
        title,
        description,
        unit,
        (Query(expr),),
        no_value,
        width=4,
        height=4,
        steps=steps,
        minimum=0 if ratio else None,
        maximum=1 if ratio else None,
    )


def now() -> Section:
    """Six tiles and the list of firing alerts."""
    tiles = (
        _tile(
            "Installed GPUs",
            "Devices that the clusters own, healthy or not. Fewer than yesterday: look for nodes that left.",
            "short",
            f"sum({gpus('installed')}) or sum({recorded('gpuwatch:model_gpus:count')})",
            NO_DAEMON,
        ),
        _tile(
            "Allocated",
            "Share of the schedulable devices that jobs hold. Low while work waits: see fragmentation below.",
            "percentunit",
            f"sum({gpus('allocated')}) / (sum({gpus('schedulable')}) > 0)",
            NO_DAEMON,
        ),
        _tile(
            "Active",
            "Share of the installed devices that do measured work. Far below the allocated share: devices are"
            " held idle.",
            "percentunit",
            f"sum({gpus('active')}) / (sum({gpus('installed')}) > 0)",
            NO_DAEMON,
        ),
        _tile(
            "Idle-held GPUs",
            "Devices that a job holds and that did no work over a whole window. Ask the owners, then reclaim them.",
            "short",
            f"sum({gpus('idle_held')})",
            NO_DAEMON,
            _ANY_IS_ODD,
        ),
        _tile(
            "Blocked GPUs",
            "Installed devices that nothing can be placed on: cordoned, unhealthy or not ready. Causes are"
            " listed below.",
            "short",
            f"sum({gpus('blocked')})",
            NO_DAEMON,
            _ANY_IS_ODD,
        ),
        _tile(
            "Power",
            "Electric power that all reporting devices draw now, in watts. Compare it with the budget of the room.",
            "watt",
            f"sum({recorded('gpuwatch:model_power:watts_sum')})",
            NO_READING,
        ),
    )
    alerts = Panel(
        "table",
        "What is wrong now",
        "Firing gpuwatch alerts, at most 200. Each has a runbook page of its name; efficiency alerts are tickets,"
        " never pages, whatever their severity.",
        "none",
        (Query(f'topk(200, ALERTS{{alertstate="firing", class=~".+", {CLUSTER}}})'),),
        "No gpuwatch alert fires",
        width=24,
        hidden_columns=("Value", "__name__", "alertstate", "uuid", "job", "instance"),
        key_columns=("severity", "alertname", "class", "cluster", "pool", "hostname", "gpu", "model"),
    )
    return Section("Now", (*tiles, alerts))


def advice() -> Section:
    """What the rules would do, and what it would give back."""
    return Section(
        "Advice",
        (
            Panel(
                "bargauge",
                "Recommendations by rule",
                "Open pieces of advice by rule and severity. Read them with `gpuwatch recommend` or on the"
                " daemon's page.",
                "short",
                (
                    Query(
                        f"sum by (cluster, rule, severity) (gpuwatch_recommendations{{{CLUSTER}}})",
                        "{{cluster}} {{rule}} {{severity}}",
                    ),
                ),
                "No rule has any advice",
                minimum=0,
            ),
            Panel(
                "bargauge",
                "Recoverable GPUs by rule",
                "Devices that following the advice would free. Rules may name the same device: do not add them up.",
                "short",
                (Query(f"sum by (cluster, rule) (gpuwatch_recoverable_gpus{{{CLUSTER}}})", "{{cluster}} {{rule}}"),),
                "No rule has any advice",
                minimum=0,
            ),
        ),
    )


def telemetry(thresholds: Thresholds) -> Section:
    """Whether the numbers above can be believed."""
    stale = thresholds.number("snapshot_stale_seconds")
    jobs = thresholds.get("exporter_jobs").value
    return Section(
        "Trust in the data",
        (
            Panel(
                "timeseries",
                "Age of the judged cluster state",
                "Seconds since the snapshot behind all counts and advice was taken. Above the line: ask"
                " `gpuwatch doctor`.",
                "s",
                (Query(f"max by (cluster) (gpuwatch_snapshot_age_seconds{{{CLUSTER}}})", "{{cluster}}"),),
                NO_DAEMON,
                width=8,
                steps=(Step(GREEN), Step(RED, stale)),
                minimum=0,
            ),
            Panel(
                "timeseries",
                "Sources that answer",
                "1 where the source answered at the last try, 0 where not. At 0 the counts above stand still:"
                " mend it first.",
                "none",
                (Query(f"min by (cluster, source) (gpuwatch_source_up{{{CLUSTER}}})", "{{cluster}} {{source}}"),),
                NO_DAEMON,
                width=8,
                minimum=0,
                maximum=1,
            ),
            Panel(
                "stat",
                "Exporters down",
                "GPU exporters that do not answer the scrape. No reading and no alert comes from their hosts:"
                " restart them.",
                "short",
                (Query(f'count(up{{job=~"{jobs}", {CLUSTER}}} == 0) or vector(0)'),),
                "No exporter is configured",
                width=8,
                steps=(Step(GREEN), Step(RED, 1)),
            ),
        ),
    )
