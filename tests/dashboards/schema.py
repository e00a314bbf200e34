"""A strict schema of the dashboard JSON (v1) that we emit: what is not listed here is a mistake."""

from __future__ import annotations

from typing import Any


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with exactly these keys, and perhaps those."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }


def one_of(*values: Any) -> dict[str, Any]:
    return {"enum": list(values)}


TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean"}
NUMBER = {"type": "number"}
NATURAL = {"type": "integer", "minimum": 0}
DATASOURCE = closed({"type": one_of("prometheus"), "uid": one_of("${datasource}")})
GRID = closed({"x": NATURAL, "y": NATURAL, "w": {"type": "integer", "minimum": 1, "maximum": 24}, "h": NATURAL})
STEPS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 3,
    "prefixItems": [closed({"color": TEXT, "value": {"type": "null"}})],
    "items": closed({"color": TEXT, "value": NUMBER}),
}
CUSTOM = closed(
    {},
    {
        "align": one_of("auto"), "cellOptions": closed({"type": one_of("auto")}), "filterable": FLAG,
        "axisPlacement": one_of("auto"), "axisLabel": {"type": "string"}, "drawStyle": one_of("line"),
        "lineInterpolation": one_of("linear"), "barAlignment": one_of(0), "lineWidth": NATURAL,
        "fillOpacity": NATURAL, "gradientMode": one_of("none"), "spanNulls": one_of(False),
        "showPoints": one_of("never"), "pointSize": NATURAL,
        "stacking": closed({"mode": one_of("none", "normal"), "group": one_of("A")}),
        "scaleDistribution": closed({"type": one_of("linear")}),
        "hideFrom": closed({"tooltip": FLAG, "viz": FLAG, "legend": FLAG}),
        "thresholdsStyle": closed({"mode": one_of("off", "line")}),
    },
)  # fmt: skip
FIELDS = closed(
    {
        "color": closed({"mode": one_of("thresholds", "palette-classic")}),
        "noValue": TEXT,
        "thresholds": closed({"mode": one_of("absolute"), "steps": STEPS}),
        "unit": one_of("short", "none", "percentunit", "watt", "celsius", "s"),
    },
    {"custom": CUSTOM, "mappings": {"type": "array"}, "min": NUMBER, "max": NUMBER, "decimals": NATURAL},
)
REDUCE = closed({"calcs": one_of(["lastNotNull"]), "fields": one_of(""), "values": one_of(False)})
OPTIONS = {
    "stat": closed(
        {
            "textMode": TEXT, "colorMode": TEXT, "graphMode": one_of("none"), "justifyMode": TEXT,
            "orientation": TEXT, "reduceOptions": REDUCE,
        }
    ),
    "timeseries": closed(
        {
            "legend": closed(
                {
                    "displayMode": one_of("table"), "placement": one_of("bottom"), "showLegend": one_of(True),
                    "calcs": one_of(["lastNotNull", "max"]),
                }
            ),
            "tooltip": closed({"mode": one_of("multi"), "sort": one_of("desc")}),
        }
    ),
    "table": closed({"showHeader": one_of(True), "sortBy": {"type": "array"}}),
    "bargauge": closed(
        {
            "displayMode": one_of("basic"), "orientation": one_of("horizontal"), "reduceOptions": REDUCE,
            "showUnfilled": FLAG, "valueMode": one_of("color"),
        }
    ),
}  # fmt: skip
TARGET = closed(
    {
        "datasource": DATASOURCE, "editorMode": one_of("code"), "expr": TEXT, "format": one_of("time_series", "table"),
        "instant": FLAG, "legendFormat": {"type": "string"}, "range": FLAG, "refId": {"pattern": "^[A-Z]$"},
    }
)  # fmt: skip
ROW = closed(
    {
        "collapsed": one_of(False), "gridPos": GRID, "id": NATURAL, "panels": {"maxItems": 0}, "title": TEXT,
        "type": one_of("row"),
    }
)  # fmt: skip


def _panel(kind: str) -> dict[str, Any]:
    transformation = closed({"id": one_of("merge", "organize"), "options": {"type": "object"}})
    return closed(
        {
            "datasource": DATASOURCE, "description": TEXT, "gridPos": GRID, "id": NATURAL, "options": OPTIONS[kind],
            "fieldConfig": closed({"defaults": FIELDS, "overrides": {"type": "array"}}), "pluginVersion": TEXT,
            "targets": {"type": "array", "items": TARGET, "minItems": 1}, "title": TEXT, "type": one_of(kind),
        },
        {"transformations": {"type": "array", "items": transformation, "minItems": 1}},
    )  # fmt: skip


VARIABLE = {
    "oneOf": [
        closed(
            {
                "name": one_of("datasource"), "type": one_of("datasource"), "query": one_of("prometheus"),
                "label": TEXT, "hide": NATURAL, "includeAll": FLAG, "multi": FLAG, "refresh": NATURAL,
                "regex": {"type": "string"}, "current": closed({}),
            }
        ),
        closed(
            {
                "name": TEXT, "type": one_of("query"), "query": closed({"query": TEXT, "refId": TEXT}), "label": TEXT,
                "definition": TEXT, "datasource": DATASOURCE, "hide": NATURAL, "includeAll": one_of(True),
                "multi": one_of(True), "allValue": one_of(".*"), "refresh": one_of(2), "sort": NATURAL,
                "regex": {"type": "string"},
                "current": closed({"selected": FLAG, "text": one_of(["All"]), "value": one_of(["$__all"])}),
            }
        ),
    ]
}  # fmt: skip
BOARD = closed(
    {
        "annotations": closed({"list": {"type": "array", "minItems": 1}}), "description": TEXT,
        "editable": one_of(False), "graphTooltip": one_of(1), "id": {"type": "null"}, "links": {"type": "array"},
        "panels": {"type": "array", "items": {"oneOf": [ROW, *map(_panel, OPTIONS)]}, "minItems": 1},
        "refresh": one_of("1m", "5m"), "schemaVersion": {"type": "integer", "minimum": 39, "maximum": 42},
        "tags": {"type": "array", "contains": one_of("gpuwatch")}, "templating": closed({"list": {"items": VARIABLE}}),
        "time": closed({"from": TEXT, "to": TEXT}), "timepicker": closed({}), "timezone": TEXT, "title": TEXT,
        "uid": {"pattern": "^[a-z0-9-]{1,40}$"},
    }
)  # fmt: skip
