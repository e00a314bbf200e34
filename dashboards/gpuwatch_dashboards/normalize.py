"""grafanalib's JSON -> clean dashboard schema v1, as tables of what is kept and small repairs.

grafanalib still writes the shapes of older Grafana releases and relies on migrations at load. A schemaVersion that is
raised skips those migrations, so each old shape is rewritten here first.
"""

from __future__ import annotations

from typing import Any

SCHEMA_VERSION = 39
PLUGIN_VERSION = "11.0.0"  # which panel options these are; Grafana migrates older ones upward

_BOARD_KEYS = {
    "annotations", "description", "editable", "graphTooltip", "id", "links", "panels", "refresh", "schemaVersion",
    "tags", "templating", "time", "timepicker", "timezone", "title", "uid",
}  # fmt: skip
_PANEL_KEYS = {
    "datasource", "description", "fieldConfig", "gridPos", "id", "options", "targets", "title", "transformations",
    "type",
}  # fmt: skip
_ROW_KEYS = {"collapsed", "gridPos", "id", "panels", "title", "type"}
_TARGET_KEYS = {"datasource", "expr", "format", "legendFormat", "refId"}
_VARIABLE_KEYS = {
    "datasource": {"hide", "includeAll", "label", "multi", "name", "query", "refresh", "regex", "type", "current"},
    "query": {
        "allValue", "current", "datasource", "hide", "includeAll", "label", "multi", "name", "query", "refresh",
        "regex", "sort", "type",
    },
}  # fmt: skip


def normalize(board: dict[str, Any]) -> dict[str, Any]:
    """One clean board; the input is grafanalib's dashboard as plain JSON values and is not changed."""
    out = _kept(board, _BOARD_KEYS)
    out["id"] = None  # the one null that Grafana asks for: the instance gives the number
    out["schemaVersion"] = SCHEMA_VERSION
    out["timepicker"] = {}
    out["panels"] = [_row(panel) if panel["type"] == "row" else _panel(panel) for panel in board["panels"]]
    out["templating"] = {"list": [_variable(variable) for variable in board["templating"]["list"]]}
    return out


def _kept(values: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in keys and value is not None}


def _row(panel: dict[str, Any]) -> dict[str, Any]:
    return _kept(panel, _ROW_KEYS)


def _panel(panel: dict[str, Any]) -> dict[str, Any]:
    out = _kept(panel, _PANEL_KEYS)
    defaults = {**panel["fieldConfig"]["defaults"]}
    # Tables carry these two at panel level, where no release reads them.
    for misplaced in ("mappings", "color"):
        if misplaced in panel:
            defaults[misplaced] = panel[misplaced]
    if panel["type"] == "bargauge":
        defaults |= _old_field_options(panel["options"]["fieldOptions"]["defaults"])
    defaults["color"] = defaults.get("color") or {"mode": "thresholds"}
    defaults["thresholds"] = {"mode": "absolute", "steps": _steps(defaults["thresholds"]["steps"])}
    custom = _custom(panel["type"], defaults.get("custom") or {})
    defaults = {key: value for key, value in defaults.items() if value is not None and key != "custom"}
    if custom:
        defaults["custom"] = custom
    out["fieldConfig"] = {"defaults": defaults, "overrides": panel["fieldConfig"].get("overrides", [])}
    out["options"] = _options(panel)
    out["targets"] = [_target(target) for target in panel["targets"]]
    out["pluginVersion"] = PLUGIN_VERSION
    if not out.get("transformations"):
        out.pop("transformations", None)
    return out


def _old_field_options(options: dict[str, Any]) -> dict[str, Any]:
    """Bar gauges still say these where Grafana 6 looked for them."""
    return {key: options[key] for key in ("decimals", "max", "min", "unit") if options[key] is not None}


def _steps(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The base step is JSON null in Grafana; grafanalib's own class writes the word "null"."""
    return [
        {"color": step["color"], "value": None if index == 0 else step["value"]} for index, step in enumerate(steps)
    ]


def _custom(kind: str, custom: dict[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in custom.items() if value is not None and key != "displayMode"}
    if kind == "table":
        out["cellOptions"] = {"type": "auto"}
    if "scaleDistribution" in out:
        out["scaleDistribution"] = {"type": out["scaleDistribution"]["type"]}
    return out


def _options(panel: dict[str, Any]) -> dict[str, Any]:
    options = {key: value for key, value in panel["options"].items() if value is not None}
    if panel["type"] == "timeseries":
        options["legend"] = {**options["legend"], "showLegend": True}
    if panel["type"] == "bargauge":
        options = {
            "displayMode": options["displayMode"],
            "orientation": options["orientation"],
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showUnfilled": True,
            "valueMode": "color",
        }
    return options


def _target(target: dict[str, Any]) -> dict[str, Any]:
    instant = bool(target["instant"])
    return {**_kept(target, _TARGET_KEYS), "editorMode": "code", "instant": instant, "range": not instant}


def _variable(variable: dict[str, Any]) -> dict[str, Any]:
    out = _kept(variable, _VARIABLE_KEYS[variable["type"]])
    out["regex"] = out.get("regex", "")
    if variable["type"] == "query":
        out["query"] = {"query": variable["query"], "refId": "variable"}
        out["definition"] = variable["query"]
        # grafanalib writes the shown word as the value; Grafana's value for everything is its own token.
        out["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    else:
        out["current"] = {}
    return out
