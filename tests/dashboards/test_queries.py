"""Every PromQL expression: parses, reads only known metrics and labels, keeps clusters apart, is cheap."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
import yaml
from gpuwatch_dashboards.rules import metrics as dcgm

from gpuwatch.render.metric_catalogue import METRICS
from tests.alert_rules.promtool import RULES
from tests.dashboards.board import BOARDS, filled, queries

_RULE_FILES = sorted((RULES / "rules").rglob("*.yaml"))
RULES_BY_NAME: dict[str, str] = {
    rule.get("record") or rule["alert"]: rule["expr"]
    for path in _RULE_FILES
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
}
RECORDS = {name for name in RULES_BY_NAME if name.startswith("gpuwatch:")}
DAEMON = {metric.name: metric for metric in METRICS}
FOREIGN = {"ALERTS", "up", "kube_node_spec_unschedulable"}
RAW = {spelling.metric for quantity in dcgm.ALL for spelling in quantity}
TARGETS = [(uid, panel, target["expr"]) for uid, board in BOARDS.items() for panel, target in queries(board)]
IDS = [f"{uid}-{panel['title']}-{index}" for index, (uid, panel, _) in enumerate(TARGETS)]


def nodes(expression: Any) -> list[Any]:
    """The expression and everything in it."""
    out = [expression]
    for name in ("expr", "lhs", "rhs", "param", "vector_selector", "vs"):
        part = getattr(expression, name, None)
        if part is not None and not isinstance(part, str | float | int):
            out += nodes(part)
    for part in getattr(expression, "args", None) or ():
        out += nodes(part)
    return out


def selectors(text: str) -> list[Any]:
    return [n for n in nodes(promql_parser.parse(text)) if isinstance(n, promql_parser.VectorSelector)]


def names_of(selector: Any) -> set[str]:
    if selector.name:
        return {selector.name}
    return {n for m in selector.matchers.matchers if m.name == "__name__" for n in m.value.split("|")}


@pytest.mark.parametrize(("name", "text"), sorted(RULES_BY_NAME.items()))
def test_rules_read_known_metrics(name: str, text: str) -> None:
    found = selectors(text)
    assert found
    for selector in found:
        assert names_of(selector) <= RECORDS | set(DAEMON) | FOREIGN | RAW, name


@pytest.mark.parametrize(("uid", "panel", "text"), TARGETS, ids=IDS)
def test_panels_read_known_metrics_and_labels_of_the_chosen_clusters(
    uid: str, panel: dict[str, Any], text: str
) -> None:
    found = selectors(filled(text))
    assert found, "a query without any metric"
    for selector in found:
        (name,) = names_of(selector)
        assert name in RECORDS | set(DAEMON) | {"ALERTS", "up"}, f"{panel['title']}: nobody emits {name}"
        matchers = {m.name: (str(m.op), m.value) for m in selector.matchers.matchers}
        assert matchers["cluster"] == ("MatchOp.Re", ".*"), panel["title"]
        if name in DAEMON:
            assert set(matchers) <= {*DAEMON[name].labels, "cluster"}, panel["title"]


@pytest.mark.parametrize(("uid", "panel", "text"), TARGETS, ids=IDS)
def test_clusters_stay_apart_and_legends_use_labels_that_are_kept(uid: str, panel: dict[str, Any], text: str) -> None:
    for labels in re.findall(r"by \(([^)]*)\)", text):
        assert "cluster" in labels.split(", "), panel["title"]
    target = next(t for t in panel["targets"] if t["expr"] == text)
    wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    by = re.findall(r"by \(([^)]*)\)", text)
    kept = set(by[0].split(", ")) if by else {"cluster", "model"}
    assert wanted <= kept, panel["title"]


@pytest.mark.parametrize(("uid", "panel", "text"), TARGETS, ids=IDS)
def test_cheap_on_large_fleets(uid: str, panel: dict[str, Any], text: str) -> None:
    called = {n.func.name for n in nodes(promql_parser.parse(filled(text))) if isinstance(n, promql_parser.Call)}
    assert not called & {"rate", "irate", "delta", "idelta"}, "every series here is a gauge"
    assert "count_values" not in text
    if panel["type"] == "timeseries":
        assert "topk" not in text
        assert "bottomk" not in text
        assert "gpuwatch:gpu_" not in text, f"{panel['title']}: a line per device on the fleet's page"
    assert not re.search(r"\[\d", text), "no literal range"


def test_the_parser_walk_reaches_every_part() -> None:
    text = 'topk(3, a{x="1"}) + on (y) sum by (y) (rate(b[5m])) unless (c offset 1h > 2) and -d'
    assert {s.name for s in selectors(text)} == {"a", "b", "c", "d"}
