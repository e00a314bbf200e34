"""Our rules at the pace of a test."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.alert_rules.promtool import RULES


def fast_rules(folder: Path) -> list[str]:
    """Writes our rule files into `folder` with an interval of a second and without hold times; gives their pattern."""
    folder.mkdir()
    for path in sorted((RULES / "rules").rglob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for group in content["groups"]:
            group["interval"] = "1s"
            for rule in group["rules"]:
                rule.pop("for", None)
                rule.pop("keep_firing_for", None)
        (folder / path.name).write_text(yaml.safe_dump(content))
    return [str(folder / "*.yaml")]
