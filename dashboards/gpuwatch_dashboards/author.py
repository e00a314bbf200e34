"""Intent -> grafanalib objects. Everything that grafanalib gets wrong or cannot say is repaired in normalize.py."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from gpuwatch.errors import InputError, MissingExtraError
from gpuwatch_dashboards.grid import Place, pack
from gpuwatch_dashboards.intent import Board, Panel

try:
    from grafanalib import core
except ImportError:
    raise MissingExtraError("grafanalib is not installed", todo="pip install 'gpuwatch-stack[dashboards]'") from None

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Every cluster that either the daemon or an exporter names; `.*` also matches series without the label.
_CLUSTERS = 'label_values({__name__=~"gpuwatch_gpus|gpuwatch:model_gpus:count"}, cluster)'
_REF_IDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def panel_id(uid: str, title: str) -> int:
    """A number that depends on the names alone, so that links to a panel survive a move."""
    return int(hashlib.sha256(f"{uid}/{title}".encode()).hexdigest()[:7], 16)


def dashboard(board: Board) -> Any:
    """The grafanalib Dashboard of one board."""
    panels: list[Any] = []
    top = 0
    for section in board.sections:
        panels.append(
            core.RowPanel(
                title=section.title,
                id=panel_id(board.uid, f"row {section.title}"),
                gridPos=core.GridPos(h=1, w=24, x=0, y=top),
            )
        )
        places, below = pack([(panel.width, panel.height) for panel in section.panels], top + 1)
        panels += [_panel(board.uid, panel, place) for panel, place in zip(section.panels, places, strict=True)]
        top = below
    return core.Dashboard(
        title=board.title,
        uid=board.uid,
        description=board.description,
        tags=list(board.tags),
        editable=False,
        refresh=board.refresh,
        time=core.Time(board.since, "now"),
        timezone="browser",
        schemaVersion=39,
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        templating=core.Templating(list=_variables()),
        annotations=core.Annotations(list=[_alert_annotation()]),
        links=[_siblings()],
        panels=panels,
    )


def _panel(uid: str, panel: Panel, place: Place) -> Any:
    common = {
        "title": panel.title,
        "description": panel.description,
        "id": panel_id(uid, panel.title),
        "dataSource": DATASOURCE,
        "gridPos": core.GridPos(h=place.height, w=place.width, x=place.x, y=place.y),
        "targets": _targets(panel),
        "thresholds": [{"color": step.color, "value": step.value} for step in panel.steps],
    }
    return _KINDS[panel.kind](panel, common)


def _targets(panel: Panel) -> list[Any]:
    if len(panel.queries) > len(_REF_IDS):
        raise InputError(f"panel {panel.title!r} has more than {len(_REF_IDS)} queries")
    return [
        core.Target(
            expr=query.expr,
            legendFormat=query.legend if panel.kind != "table" else "",
            refId=letter,
            instant=panel.kind != "timeseries",
            format="table" if panel.kind == "table" else "time_series",
            datasource=DATASOURCE,
        )
        for letter, query in zip(_REF_IDS, panel.queries, strict=False)
    ]


def _stat(panel: Panel, common: dict[str, Any]) -> Any:
    return core.Stat(
        **common,
        format=panel.unit,
        noValue=panel.no_value,
        graphMode="none",
        reduceCalc="lastNotNull",
        colorMode="value",
        extraJson={"fieldConfig": {"defaults": {"min": panel.minimum, "max": panel.maximum}}},
    )


def _timeseries(panel: Panel, common: dict[str, Any]) -> Any:
    lines = len(panel.steps) > 1
    return core.TimeSeries(
        **common,
        unit=panel.unit,
        valueMin=panel.minimum,
        valueMax=panel.maximum,
        legendDisplayMode="table",
        legendCalcs=["lastNotNull", "max"],
        tooltipMode="multi",
        tooltipSort="desc",
        showPoints="never",
        fillOpacity=60 if panel.stacked else 0,
        stacking={"mode": "normal" if panel.stacked else "none", "group": "A"},
        thresholdsStyleMode="line" if lines else "off",
        extraJson={"fieldConfig": {"defaults": {"noValue": panel.no_value}}},
    )


def _table(panel: Panel, common: dict[str, Any]) -> Any:
    several = len(panel.queries) > 1
    renamed = {f"Value #{letter}": query.legend for letter, query in zip(_REF_IDS, panel.queries, strict=False)}
    order = [*panel.key_columns, *renamed]
    organize = {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(("Time", *panel.hidden_columns), True),
            "indexByName": {name: index for index, name in enumerate(order)},
            "renameByName": renamed if several else {},
        },
    }
    return core.Table(
        **common,
        unit=panel.unit,
        filterable=True,
        transformations=[{"id": "merge", "options": {}}, organize] if several else [organize],
        extraJson={"fieldConfig": {"defaults": {"noValue": panel.no_value}}},
    )


def _bargauge(panel: Panel, common: dict[str, Any]) -> Any:
    return core.BarGauge(
        **common,
        format=panel.unit,
        displayMode="basic",
        orientation="horizontal",
        calc="lastNotNull",
        min=panel.minimum,
        max=panel.maximum,
        extraJson={"fieldConfig": {"defaults": {"noValue": panel.no_value}}},
    )


_KINDS: dict[str, Callable[[Panel, dict[str, Any]], Any]] = {
    "stat": _stat,
    "timeseries": _timeseries,
    "table": _table,
    "bargauge": _bargauge,
}


def _variables() -> list[Any]:
    return [
        core.Template(name="datasource", label="Data source", type="datasource", query="prometheus"),
        core.Template(
            name="cluster",
            label="Cluster",
            type="query",
            query=_CLUSTERS,
            dataSource=DATASOURCE,
            includeAll=True,
            multi=True,
            allValue=".*",
            default="All",
            refresh=core.REFRESH_ON_TIME_RANGE_CHANGE,
            sort=core.SORT_ALPHA_ASC,
        ),
    ]


def _alert_annotation() -> dict[str, Any]:
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": 'ALERTS{alertstate="firing", severity="critical", class=~".+", cluster=~"$cluster"}',
        "iconColor": "red",
        "name": "Critical alerts",
        "step": "60s",
        "tagKeys": "cluster,hostname,gpu",
        "titleFormat": "{{alertname}}",
    }


def _siblings() -> dict[str, Any]:
    return {
        "asDropdown": True,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "tags": ["gpuwatch"],
        "targetBlank": False,
        "title": "gpuwatch",
        "tooltip": "The other gpuwatch boards, with this time range and these variables",
        "type": "dashboards",
        "url": "",
    }
