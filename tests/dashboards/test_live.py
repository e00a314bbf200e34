"""Every panel's query runs on a real Prometheus that scrapes the daemon's metrics and DCGM pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboards.board import BOARDS, filled, queries
from tests.dashboards.fleet import HOSTS, daemon_page, dcgm_page, fleet_counts
from tests.dashboards.rules import fast_rules
from tests.servers import Prometheus, pages, prometheus

pytestmark = pytest.mark.server
TARGETS = [(uid, panel, target) for uid, board in BOARDS.items() for panel, target in queries(board)]
IDS = [f"{uid}-{panel['title']}-{target['refId']}" for uid, panel, target in TARGETS]
EXPECTED_EMPTY = {("Demand and what was forecast for it", "B")}  # the forecast must be six hours old


@pytest.fixture(scope="module")
def server(prometheus_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    texts = {f"/{host}": dcgm_page(host) for host in HOSTS} | {"/metrics": daemon_page()}
    with pages(texts) as address:
        scrape: list[dict[str, Any]] = [
            {"job_name": "gpuwatch", "honor_labels": True, "static_configs": [{"targets": [address]}]}
        ]
        scrape += [
            {
                "job_name": f"dcgm-exporter-{host}",
                "metrics_path": f"/{host}",
                "static_configs": [{"targets": [address], "labels": {"cluster": "demo"}}],
                "honor_labels": True,
            }
            for host in [*HOSTS, "dead"]
        ]
        folder = tmp_path_factory.mktemp("prometheus")
        config = {"rule_files": fast_rules(folder / "rules"), "scrape_configs": scrape}
        with prometheus(prometheus_program, folder, config) as running:
            running.wait_for("count(gpuwatch:gpu_present:bool) == 16")
            running.wait_for("gpuwatch:cluster_utilization:p90")
            running.wait_for("gpuwatch_gpus")
            running.wait_for('ALERTS{alertname="GpuHot"}')
            running.wait_for("count_over_time(gpuwatch:cluster_utilization:avg[1m]) >= 3")
            yield running


def answer(server: Prometheus, target: dict[str, Any], cluster: str = ".*") -> list[dict[str, Any]]:
    text = filled(target["expr"], cluster)
    return server.instant(text) if target["instant"] else server.range(text)


def values(result: list[dict[str, Any]]) -> list[float]:
    return [float(v) for series in result for _, v in series.get("values", [series.get("value")])]


@pytest.mark.parametrize(("uid", "panel", "target"), TARGETS, ids=IDS)
def test_every_panel_shows_something_plausible(
    server: Prometheus, uid: str, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    found = answer(server, target)
    if (panel["title"], target["refId"]) in EXPECTED_EMPTY:
        assert found == []
        return
    assert found, panel["title"]
    assert len(found) <= 200
    numbers = values(found)
    assert all(math.isfinite(number) for number in numbers)
    defaults = panel["fieldConfig"]["defaults"]
    for bound, wrong in (
        ("min", min(numbers) < defaults.get("min", -math.inf)),
        ("max", max(numbers) > defaults.get("max", math.inf)),
    ):
        assert not wrong, f"{panel['title']}: below or above its {bound}"


@pytest.mark.parametrize(("uid", "panel", "target"), TARGETS, ids=IDS)
def test_another_cluster_has_nothing_of_this_one(
    server: Prometheus, uid: str, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    found = answer(server, target, cluster="elsewhere")
    assert not found or values(found) == [0.0] * len(values(found)), panel["title"]


def test_the_cluster_list_is_filled(server: Prometheus) -> None:
    for board in BOARDS.values():
        (variable,) = [v for v in board["templating"]["list"] if v["name"] == "cluster"]
        selector = variable["definition"].removeprefix("label_values(").removesuffix(", cluster)")
        assert server.api("label/cluster/values", **{"match[]": selector}) == ["demo"]


def now(server: Prometheus, title: str) -> list[float]:
    """What the first query of a panel says at this moment."""
    target = next(t for _, p, t in TARGETS if p["title"] == title)
    return values(server.instant(filled(target["expr"])))


def test_numbers_agree_with_the_pages(server: Prometheus) -> None:
    assert now(server, "Power") == [4 * (655 + 110 + 690 + 90)]
    assert now(server, "Exporters down") == [1.0]
    assert now(server, "Hottest device by model") == [86.0]
    assert now(server, "Smallest distance to slowdown by model") == [1.0]
    assert now(server, "Highest power relative to the limit by model") == pytest.approx([690 / 700])
    assert now(server, "Utilization of all devices") == pytest.approx([(0.91 + 0.97) / 4])
    assert values(server.instant("sum(gpuwatch:gpu_allocated:bool)")) == [12.0]


def test_counts_are_those_of_the_evaluation(server: Prometheus) -> None:
    milligpu = fleet_counts()
    installed = milligpu["installed"]
    assert now(server, "Installed GPUs") == pytest.approx([installed / 1000])
    assert sum(now(server, "Allocation waterfall")) == pytest.approx(installed / 1000)
    assert now(server, "Idle-held GPUs") == pytest.approx([milligpu["idle_held"] / 1000])
    assert sum(now(server, "Idle-held GPUs by model")) == pytest.approx(milligpu["idle_held"] / 1000)
    assert now(server, "Blocked GPUs") == pytest.approx([milligpu["blocked"] / 1000])
    assert sum(now(server, "Blocked GPUs by cause")) == pytest.approx(milligpu["blocked"] / 1000)
    assert now(server, "Allocated") == pytest.approx([milligpu["allocated"] / milligpu["schedulable"]])
    assert sum(now(server, "Pools")) == pytest.approx(installed / 1000)


def test_both_spellings_give_one_form(server: Prometheus) -> None:
    for metric in ("utilization:ratio", "memory_used:ratio", "power:ratio", "temperature:celsius"):
        found = server.instant(f"gpuwatch:gpu_{metric}")
        assert len(found) == 16, metric
        labels = [set(series["metric"]) - {"__name__"} for series in found]
        assert all(names == {"cluster", "hostname", "gpu", "uuid", "model"} for names in labels), metric
        assert {series["metric"]["hostname"] for series in found} == set(HOSTS)


def test_the_right_alerts_fire_at_once_when_nothing_holds_them(server: Prometheus) -> None:
    found = server.instant('ALERTS{alertstate="firing", class=~".+"}')
    by_name: dict[str, set[str]] = {}
    for series in found:
        by_name.setdefault(series["metric"]["alertname"], set()).add(series["metric"].get("hostname", ""))
    assert by_name["GpuHot"] == {"new-hot"}
    assert by_name["GpuVeryHot"] == {"new-hot"}
    assert by_name["GpuMemoryHigh"] == {"new-hot"}
    assert by_name["GpuPowerNearLimit"] == {"old-busy", "new-hot"}
    assert "GpuExporterDown" in by_name
    assert not {"GpuAllocatedIdle", "GpuUnderutilized", "GpuMetricMissing", "AnalyticsAbsent"} & set(by_name), by_name


def test_no_rule_fails_to_evaluate(server: Prometheus) -> None:
    faults = {
        rule["name"]: rule.get("lastError")
        for group in server.api("rules")["groups"]
        for rule in group["rules"]
        if rule["health"] != "ok"
    }
    assert faults == {}
