"""The promtool cases are sharp: a threshold moved by a fifth, or a dropped hold time, breaks at least one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alert_rules.promtool import RULES, run

# alert -> the thresholds that its expression compares with; a mutant compares with another number.
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
THRESHOLDS = yaml.safe_load((RULES / "thresholds.yaml").read_text())
Rule = dict[str, Any]


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule as it is, then each way to blunt it."""
    alert = rule["alert"]
    yield "unchanged", rule
    yield "no hold time", {key: value for key, value in rule.items() if key != "for"}
    for name in LIMITS.get(alert, ()):
        old = THRESHOLDS[name]["value"]
        for factor in (0.8, 1.2):
            changed = re.sub(rf"(?<=[<>] ){re.escape(f'{old:.15g}')}\b", f"{old * factor:.15g}", rule["expr"])
            assert changed != rule["expr"], f"{name} is not compared with in {alert}"
            yield f"{name} x {factor}", {**rule, "expr": changed}


def only_what_is_read(groups: list[dict[str, Any]], mutant: Rule) -> list[dict[str, Any]]:
    """The groups with the mutant in its place, without the rules that it does not read: promtool takes its time."""
    recorded = {rule["record"]: rule["expr"] for group in groups for rule in group["rules"] if "record" in rule}
    read, left = set(), [mutant["expr"]]
    while left:
        names = set(re.findall(r"[a-zA-Z_:][\w:]*", left.pop())) & recorded.keys() - read
        read |= names
        left += [recorded[name] for name in names]
    kept = []
    for group in groups:
        rules = [mutant if rule.get("alert") == mutant["alert"] else rule for rule in group["rules"]]
        kept.append({**group, "rules": [rule for rule in rules if rule is mutant or rule.get("record") in read]})
    return [group for group in kept if group["rules"]]


@pytest.mark.slow
@pytest.mark.parametrize("alert", ALERTS)
def test_a_moved_threshold_and_a_dropped_hold_time_are_noticed(alert: str, tmp_path: Path) -> None:
    """All mutants of an alert in one start of promtool; the alert as it is stands among them and must pass."""
    cases = yaml.safe_load((RULES / "tests" / f"{alert}.yaml").read_text())
    groups = [
        group
        for name in cases["rule_files"]
        for group in yaml.safe_load((RULES / "tests" / name).read_text())["groups"]
    ]
    (rule,) = [rule for group in groups for rule in group["rules"] if rule.get("alert") == alert]
    names = []
    for number, (name, mutant) in enumerate(mutants(rule)):
        kept = only_what_is_read(groups, mutant)
        (tmp_path / f"rules{number}.yaml").write_text(yaml.safe_dump({"groups": kept}))
        order = [group["name"] for group in kept]
        mine = {**cases, "rule_files": [f"rules{number}.yaml"], "group_eval_order": order}
        (tmp_path / f"test{number}.yaml").write_text(yaml.safe_dump(mine))
        names.append(name)
    checked = run("check", "rules", *[f"rules{n}.yaml" for n in range(len(names))], cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = run("test", "rules", *[f"test{n}.yaml" for n in range(len(names))], cwd=tmp_path)
    said = done.stdout + done.stderr
    verdicts = re.findall(r"Unit Testing:  test(\d+)\.yaml\n(  SUCCESS)?", done.stdout)
    assert [int(number) for number, _ in verdicts] == [*range(len(names))], said
    assert done.stderr.count("FAILED:") == len(names) - 1, said
    assert [names[int(number)] for number, success in verdicts if success] == ["unchanged"], said
