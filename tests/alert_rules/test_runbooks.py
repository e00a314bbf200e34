"""Every alert has its page: whole, with safe diagnosis, commands that exist and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest
import typer
import yaml

from gpuwatch.cli.app import build_app
from tests.alert_rules.promtool import RULES, run

DOCS = RULES.parent / "docs"
PAGES = {path.stem: path.read_text() for path in sorted((DOCS / "alerts").glob("*.md"))}
ALERTS = {
    rule["alert"]: rule
    for path in (RULES / "rules").rglob("*.yaml")
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
RECORDS = {
    rule["record"]
    for group in yaml.safe_load((RULES / "rules" / "recording.yaml").read_text())["groups"]
    for rule in group["rules"]
}
HEADINGS = [
    "Meaning", "Impact", "Diagnosis", "Mitigation", "False alarms", "Escalate", "Verify recovery", "Dashboards",
]  # fmt: skip
every_page = pytest.mark.parametrize("name", sorted(PAGES))


def sections(name: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGES[name], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert set(PAGES) == set(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"] == f"docs/alerts/{name}.md"
        assert (RULES.parent / rule["annotations"]["runbook_url"]).is_file()


@every_page
def test_headings_in_order(name: str) -> None:
    assert PAGES[name].startswith(f"# {name}\n")
    assert list(sections(name)) == HEADINGS
    assert all(text.strip() for text in sections(name).values())


@every_page
def test_severity_and_class_are_those_of_the_rule(name: str) -> None:
    labels = ALERTS[name]["labels"]
    head = PAGES[name].split("## ")[0]
    assert f"Severity {labels['severity']}, class {labels['class']}" in head
    assert "Time to act: " in head


@every_page
def test_commands_are_marked_and_diagnosis_is_harmless(name: str) -> None:
    parts = sections(name)
    bullets = re.findall(r"^- (.+(?:\n  .+)*)", parts["Diagnosis"], flags=re.MULTILINE)
    assert len(bullets) >= 2
    assert all(re.match(r"read-only: `[^`]+`: ", bullet) for bullet in bullets)
    harmful = r"\b(delete|drain|cordon|reboot|restart|kill|reset|-pl)\b"
    assert not any(re.search(harmful, bullet.split("`")[1]) for bullet in bullets)
    for bullet in re.findall(r"^- (.+(?:\n  .+)*)", parts["Mitigation"], flags=re.MULTILINE):
        for command in re.findall(r"`([^`]+)`", bullet):
            if re.search(harmful, command):
                assert bullet.startswith("disruptive: "), bullet
    assert "**Do not:** " in parts["Mitigation"]


@every_page
def test_queries_parse_and_read_what_is_recorded(name: str) -> None:
    (block,) = re.findall(r"```promql\n(.*?)```", sections(name)["Diagnosis"], flags=re.DOTALL)
    for line in block.strip().splitlines():
        promql_parser.parse(line)
        for metric in re.findall(r"gpuwatch:[a-z_]+:[a-z_]+", line):
            assert metric in RECORDS


@every_page
def test_gpuwatch_commands_and_their_options_exist(name: str) -> None:
    commands = typer.main.get_command(build_app())
    for words in (found.split() for found in re.findall(r"`gpuwatch ([^`]+)`", PAGES[name])):
        command = commands.commands[words[0]]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, words


@pytest.mark.parametrize(
    "path", [*sorted((DOCS / "alerts").glob("*.md")), DOCS / "dashboards.md"], ids=lambda p: p.stem
)
def test_links_resolve(path: Path) -> None:
    text = path.read_text()
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if target.startswith("https://"):
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.is_file(), target
        if anchor:
            assert anchor in anchors(there.read_text()), f"{target}#{anchor}"


def test_the_overview_lists_every_alert_with_its_severity_and_class() -> None:
    text = (DOCS / "dashboards.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\([^)]+\) \| (\w+) \| (\w+) \|", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted((n, r["labels"]["severity"], r["labels"]["class"]) for n, r in ALERTS.items())


def test_the_example_configuration_is_legal(tmp_path: Path) -> None:
    example = RULES.parent / "deploy" / "prometheus" / "rules.yml"
    (tmp_path / "prometheus.yml").write_text(example.read_text())
    (tmp_path / "alert_rules").symlink_to(RULES)
    done = run("check", "config", "prometheus.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("rules found") == len(list((RULES / "rules").glob("*.yaml")))
