"""The rule files: generated without a difference, legal, complete, tested by promtool one alert at a time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpuwatch_dashboards.__main__ import main
from gpuwatch_dashboards.rules.alerts import CLASSES, SCOPES, SEVERITIES, alert_group, fill
from gpuwatch_dashboards.rules.files import differences, rule_files
from gpuwatch_dashboards.rules.recording import INTERVAL_SECONDS
from gpuwatch_dashboards.thresholds import load_thresholds

from gpuwatch.errors import InputError, SettingsError
from gpuwatch.model.catalogue import match
from tests.alert_rules.promtool import RULES, run

ROOT = RULES.parent
RULE_FILES = sorted((RULES / "rules").rglob("*.yaml"))
TEST_FILES = sorted((RULES / "tests").glob("*.yaml"))


def rules() -> list[dict[str, Any]]:
    groups = [group for path in RULE_FILES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def test_what_is_committed_is_what_the_templates_give() -> None:
    assert differences(rule_files(), RULES / "rules") == []
    assert main(["rules", "--check"]) == 0


def test_a_stale_or_foreign_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--output", str(tmp_path)]) == 0
    (tmp_path / "extra.yaml").write_text("groups: []\n")
    (tmp_path / "hardware.yaml").write_text("groups: []\n")
    (tmp_path / "capacity.yaml").unlink()
    capsys.readouterr()
    assert main(["rules", "--check", "--output", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    for line in ("extra.yaml: not generated", "hardware.yaml: differs", "capacity.yaml: missing"):
        assert line in said


def test_addresses_of_runbooks_and_grafana_can_be_given(tmp_path: Path) -> None:
    given = rule_files(runbook_base="https://wiki.test/alerts/", grafana_url="https://graphs.test/")
    annotations = yaml.safe_load(given["hardware.yaml"])["groups"][0]["rules"][0]["annotations"]
    assert annotations["runbook_url"] == "https://wiki.test/alerts/GpuHot.md"
    assert annotations["dashboard_url"].startswith("https://graphs.test/d/gw-fleet?var-cluster=")


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_promtool_finds_nothing_to_complain_about(path: Path) -> None:
    done = run("check", "rules", "--lint=all", "--lint-fatal", path, cwd=RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted((RULES / "tests").rglob("*.yaml")), ids=lambda path: path.stem)
def test_promtool_cases(path: Path) -> None:
    done = run("test", "rules", path.name, cwd=path.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_cases_that_fire_and_cases_that_stay_quiet() -> None:
    assert {path.stem for path in TEST_FILES} == set(ALERTS)
    for path in TEST_FILES:
        groups = yaml.safe_load(path.read_text())["tests"]
        checks = [check for group in groups for check in group["promql_expr_test"]]
        assert any(check["exp_samples"] for check in checks), path
        assert any(not check["exp_samples"] for check in checks), path
        text = path.read_text()
        assert "restart" in text, f"{path}: no restart case"
        assert "stale" in text or "_x" in text, f"{path}: no missing series"


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_labels_and_annotations(name: str) -> None:
    rule = ALERTS[name]
    labels, annotations = rule["labels"], rule["annotations"]
    assert labels["severity"] in SEVERITIES
    assert labels["class"] in CLASSES
    assert labels["scope"] in SCOPES
    assert not any("$value" in text for text in labels.values()), "a value in a label makes a new alert at each change"
    assert set(annotations) == {"summary", "description", "runbook_url", "dashboard_url"}
    assert len(annotations["summary"]) >= 30
    assert len(annotations["description"]) >= 60
    assert re.search(r"[<>]=?|==|absent\(", rule["expr"]), "an alert compares"
    assert rule["for"], "an alert waits"


def test_only_hardware_fabric_thermal_and_telemetry_may_page() -> None:
    paging = {n for n, r in ALERTS.items() if r["labels"]["severity"] == "critical"}
    tickets = {n for n in paging if ALERTS[n]["labels"]["class"] == "efficiency"}
    assert tickets == {"GpuAllocatedIdle", "GpuMemoryCritical"}
    assert {ALERTS[n]["labels"]["class"] for n in paging - tickets} <= {"hardware", "fabric", "thermal", "telemetry"}


def test_alerts_read_the_normalized_layer_only() -> None:
    for name, rule in ALERTS.items():
        assert "DCGM_" not in rule["expr"], name


def test_names_are_unique() -> None:
    names = [rule.get("record") or rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))


def test_every_threshold_is_used_and_every_name_is_known() -> None:
    known = set(load_thresholds().by_name)
    used = set().union(*(re.findall(r"<<(\w+)", p.read_text()) for p in (RULES / "templates").rglob("*.yaml")))
    assert used <= known
    assert known - used == {"nvlink_bytes_per_second"}  # read by the recording rules


@pytest.mark.parametrize(("samples", "window_seconds"), [("utilization_low_samples", 3600), ("idle_samples", 7200)])
def test_sample_counts_are_four_fifths_of_the_window(samples: str, window_seconds: int) -> None:
    assert load_thresholds().number(samples) == 0.8 * window_seconds / INTERVAL_SECONDS


def test_nvlink_rates_agree_with_the_catalogue() -> None:
    products = {
        "Tesla V100-SXM2-32GB": 1, "NVIDIA A100-SXM4-80GB": 1, "NVIDIA A100-SXM4-40GB": 1, "NVIDIA H100 80GB HBM3": 1,
        "NVIDIA H200": 1, "NVIDIA B200": 1, "NVIDIA GB200": 1, "NVIDIA B300": 1,
        "NVIDIA H100 PCIe": 0, "NVIDIA L40S": 0, "Tesla T4": 0, "NVIDIA A100-PCIE-40GB": 0, "NVIDIA H200 NVL": 0,
    }  # fmt: skip
    table = load_thresholds().get("nvlink_bytes_per_second").value
    for product, known in products.items():
        rates = [rate for pattern, rate in table.items() if re.fullmatch(pattern, product)]
        assert len(rates) == known, product
        if known:
            card = match(product)
            assert card is not None
            assert rates[0] == card.nvlink_bytes_per_second, product


def test_a_bad_threshold_or_template_is_an_error_that_names_it(tmp_path: Path) -> None:
    thresholds = load_thresholds()
    with pytest.raises(SettingsError, match="no_such"):
        fill("x > <<no_such>>", thresholds)
    with pytest.raises(SettingsError, match="furlong"):
        fill("x > <<idle_ratio|furlong>>", thresholds)
    cases = {
        "a: [": "not YAML",
        "{}": "no list",
        "- {alert: A, expr: x > 1, labels: {severity: fatal, class: thermal, scope: gpu}}": "severity 'fatal'",
        "- {alert: A, expr: x > 1, labels: {severity: info, class: thermal, scope: gpu}}": "no summary",
        "- {record: a, expr: x}": "not an alert",
    }
    for text, message in cases.items():
        path = tmp_path / "bad.yaml"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            alert_group(path, thresholds, runbook_base="r", grafana_url="")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no table"),
        ("a: 1", "exactly value, unit and why"),
        ("a: {value: 1, unit: furlong, why: x}", "unknown unit"),
        ("a: {value: 1, unit: ratio, why: x, more: 1}", "exactly value"),
        ("a: [", "not YAML"),
    ],
)
def test_the_thresholds_file_is_read_strictly(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "thresholds.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_thresholds(path)


def test_a_threshold_that_is_no_number_cannot_be_drawn() -> None:
    with pytest.raises(SettingsError, match="idle_window"):
        load_thresholds().number("idle_window")
