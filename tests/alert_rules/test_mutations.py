"""The promtool cases are sharp: a threshold moved by a fifth, or a dropped hold time, breaks at least one of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.alert_rules.promtool import RULES, run

# alert -> how its main comparison reads in the template; the mutated number replaces the named threshold.
LIMITS = {
    "GpuUnderutilized": ["utilization_low_ratio"],
    "GpuAllocatedIdle": ["idle_ratio"],
    "GpuMemoryHigh": ["memory_high_ratio"],
    "GpuMemoryCritical": ["memory_critical_ratio"],
    "GpuHot": ["temperature_hot_celsius", "temperature_hot_margin_celsius"],
    "GpuVeryHot": ["temperature_very_hot_celsius", "temperature_very_hot_margin_celsius"],
    "GpuPowerOverLimit": ["power_over_ratio"],
    "GpuPowerNearLimit": ["power_near_ratio"],
    "NvlinkUnderused": ["nvlink_low_ratio", "nvlink_busy_ratio"],
    "FragmentationHigh": ["fragmentation_high_index", "fragmentation_clear_index"],
    "GpuAllocationUnknown": ["allocation_unknown_ratio"],
    "AnalyticsStale": ["snapshot_stale_seconds"],
}
ALERTS = sorted(path.stem for path in (RULES / "tests").glob("*.yaml"))


def rule_file(alert: str) -> Path:
    return next(p for p in (RULES / "rules").rglob("*.yaml") if f"- alert: {alert}\n" in p.read_text())


def survives(alert: str, text: str, tmp_path: Path) -> bool:
    """Whether the cases of `alert` still pass when its rule file has this text."""
    shutil.copytree(RULES / "rules", tmp_path / "rules")
    shutil.copytree(RULES / "tests", tmp_path / "tests")
    (tmp_path / rule_file(alert).relative_to(RULES)).write_text(text)
    assert run("check", "rules", tmp_path / rule_file(alert).relative_to(RULES), cwd=tmp_path).returncode == 0
    return run("test", "rules", f"{alert}.yaml", cwd=tmp_path / "tests").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("alert", ALERTS)
def test_dropping_the_hold_time_is_noticed(alert: str, tmp_path: Path) -> None:
    content = yaml.safe_load(rule_file(alert).read_text())
    for rule in content["groups"][0]["rules"]:
        if rule["alert"] == alert:
            del rule["for"]
    assert not survives(alert, yaml.safe_dump(content), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.8, 1.2])
@pytest.mark.parametrize(("alert", "name"), [(a, n) for a, names in LIMITS.items() for n in names])
def test_a_moved_threshold_is_noticed(alert: str, name: str, factor: float, tmp_path: Path) -> None:
    thresholds = yaml.safe_load((RULES / "thresholds.yaml").read_text())
    old = thresholds[name]["value"]
    content = yaml.safe_load(rule_file(alert).read_text())
    for rule in content["groups"][0]["rules"]:
        if rule["alert"] == alert:
            changed = re.sub(rf"(?<=[<>] ){re.escape(f'{old:.15g}')}\b", f"{old * factor:.15g}", rule["expr"])
            assert changed != rule["expr"], f"{name} is not compared with in {alert}"
            rule["expr"] = changed
    assert not survives(alert, yaml.safe_dump(content), tmp_path)
