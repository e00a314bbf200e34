"""Alert templates -> alerting rules: fills in the named thresholds and sets what every alert must carry."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwatch.errors import InputError, SettingsError
from gpuwatch_dashboards.rules.recording import INTERVAL
from gpuwatch_dashboards.thresholds import Thresholds, parse_yaml

SEVERITIES = ("critical", "warning", "info")
CLASSES = ("hardware", "fabric", "thermal", "efficiency", "capacity", "telemetry", "software")
SCOPES = ("gpu", "node", "cluster")
_MARK = re.compile(r"<<(\w+)(?:\|(\w+))?>>")
_ALLOWED_KEYS = {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"}


def _plain(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


_FILTERS: dict[str, Callable[[Any], str]] = {"": _plain, "percent": lambda value: f"{value * 100:.15g}%"}


def fill(text: str, thresholds: Thresholds) -> str:
    """Replaces each <<name>> and <<name|percent>>; an unknown name or filter is a SettingsError."""

    def one(match: re.Match[str]) -> str:
        name, shape = match.group(1), match.group(2) or ""
        if shape not in _FILTERS:
            raise SettingsError(f"<<{name}|{shape}>>: no filter is called {shape!r}")
        return _FILTERS[shape](thresholds.get(name).value)

    return _MARK.sub(one, text)


def alert_group(template: Path, thresholds: Thresholds, *, runbook_base: str, grafana_url: str) -> dict[str, Any]:
    """One template file -> one rule group called after it; a rule that lacks what the policy asks is an InputError."""
    rules = parse_yaml(fill(template.read_text(encoding="utf-8"), thresholds), template)
    if not isinstance(rules, list) or not rules:
        raise InputError(f"{template} holds no list of alerts")
    return {
        "name": f"gpuwatch-{template.stem.replace('_', '-')}",
        "interval": INTERVAL,
        "rules": [_complete(rule, template, runbook_base, grafana_url) for rule in rules],
    }


def _complete(rule: Any, template: Path, runbook_base: str, grafana_url: str) -> dict[str, Any]:
    if not isinstance(rule, dict) or "alert" not in rule or set(rule) - _ALLOWED_KEYS:
        raise InputError(f"{template}: not an alert of the keys {sorted(_ALLOWED_KEYS)}: {rule!r}")
    name = rule["alert"]
    labels = rule.get("labels", {})
    for key, legal in (("severity", SEVERITIES), ("class", CLASSES), ("scope", SCOPES)):
        if labels.get(key) not in legal:
            raise InputError(f"{template}: {name} has {key} {labels.get(key)!r}", todo=f"one of {', '.join(legal)}")
    annotations = dict(rule.get("annotations", {}))
    for key in ("summary", "description"):
        if not annotations.get(key):
            raise InputError(f"{template}: {name} has no {key}")
    annotations["runbook_url"] = f"{runbook_base}/{name}.md"
    annotations["dashboard_url"] = f"{grafana_url}/d/gw-fleet?var-cluster={{{{ $labels.cluster }}}}"
    return {**rule, "expr": rule["expr"].rstrip("\n"), "annotations": annotations}
