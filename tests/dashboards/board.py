"""The committed dashboards as values, for all tests of this folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GENERATED = Path(__file__).resolve().parents[2] / "dashboards" / "gpuwatch_dashboards" / "generated"
BOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in GENERATED.glob("*.json")}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Every panel but the row titles."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(panel, target) pairs."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel, target


def filled(expression: str, cluster: str = ".*") -> str:
    """The expression as Grafana sends it for one choice of the cluster variable."""
    return expression.replace("$cluster", cluster)


def steps(panel: dict[str, Any]) -> list[float | None]:
    """Values of the threshold steps."""
    return [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]


def variables_used(text: str) -> set[str]:
    """Names of the dashboard variables in a text; Grafana's own (double underscore) are left out."""
    names = re.findall(r"\$\{(\w+)[}:]|\$(\w+)", text)
    return {a or b for a, b in names if not (a or b).startswith("__")}
