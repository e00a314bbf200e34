"""The index of the documentation lists every page, links lead somewhere, decisions are numbered without a gap."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def links(page: Path) -> list[str]:
    """Where a page points to within the checkout; code is no link."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [to for to in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", to)]


def headings(page: Path) -> set[str]:
    """The anchors that a reader's browser knows of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for to in links(page):
        path, _, anchor = to.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), to
        assert target.is_relative_to(ROOT), to
        if anchor and target.suffix == ".md":
            assert anchor in headings(target), to


def test_the_index_lists_every_page() -> None:
    index = DOCS / "README.md"
    listed = {(DOCS / to).resolve() for to in links(index)}
    assert {page for page in PAGES if page.is_relative_to(DOCS) and page != index} <= listed


def test_decisions_are_numbered_without_gaps_or_doubles() -> None:
    names = sorted(page.name for page in (DOCS / "decisions").iterdir())
    assert [name[:4] for name in names] == [f"{number:03}-" for number in range(1, len(names) + 1)]
    assert all((DOCS / "decisions" / name).read_text().startswith(f"# {name[:3]}: ") for name in names)
