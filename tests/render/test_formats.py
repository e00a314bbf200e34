"""What every format promises: raw numbers for programs, aligned and harmless text for people."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.render.report import FORMATS, Bar, Chart, Column, Lines, Report, Style, Table
from gpuwatch.render.reports.recommendations import recommendations_report
from tests.render.evaluations import HOSTILE, a_recommendation, an_evaluation
from tests.render.reports import every_report

PEOPLE = ("table", "wide", "md", "html")


def small(*rows: dict, **fields) -> Report:
    table = Table(title="T", columns=(Column("name", "Name", flex=True), Column("n", "N", "GPUs")), rows=rows)
    known = {"title": "t", "document": {"items": []}, "sections": (table,), "flat": table}
    return Report(**{**known, **fields})


def printed(form: str, report: Report, **style) -> str:
    return FORMATS.get(form)(report, Style(**style))


def test_csv_of_12_findings_has_13_lines_raw_numbers_and_units_in_its_header() -> None:
    advice = [a_recommendation(name=f"ml/{at}", id=str(at)) for at in range(12)]
    text = printed("csv", recommendations_report(an_evaluation(), advice))
    assert text.count("\n") == 13
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 12
    assert float(rows[0]["recoverable_gpu_hours_per_week"]) == 336.0
    assert float(rows[0]["cost_per_week"]) == 1008.0
    assert rows[0]["currency"] == "USD"


def test_an_unknown_number_is_an_empty_csv_cell_and_a_dash_for_people_never_zero() -> None:
    report = small({"name": "a", "n": None}, {"name": "b", "n": 0})
    assert printed("csv", report).splitlines() == ["name,n", "a,", "b,0"]
    assert [line.split()[-1] for line in printed("table", report).splitlines()[3:]] == ["-", "0"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_a_name_cannot_become_a_spreadsheet_formula(start: str) -> None:
    text = printed("csv", small({"name": f"{start}cmd()", "n": -1.5}))
    assert text.splitlines()[1] == f"'{start}cmd(),-1.5"


def test_json_yaml_and_jsonl_hold_the_same_items() -> None:
    for name, report in every_report().items():
        document = json.loads(printed("json", report))
        assert document == report.document, name
        assert yaml.safe_load(printed("yaml", report)) == document, name
        lines = [json.loads(line) for line in printed("jsonl", report).splitlines()]
        assert [{**line, **item} for line, item in zip(lines, document["items"], strict=True)] == lines, name


def test_every_document_names_its_schema_evaluation_and_instant() -> None:
    for name, report in every_report().items():
        assert report.document["schema"].startswith("gpuwatch."), name
        assert {"items", "skipped"} <= report.document.keys(), name
        if name != "snapshot":  # a recorded cluster was not evaluated
            assert report.document["evaluation_id"] == "0123456789ab", name
            assert report.document["snapshot_taken_at"] == "2026-03-02T12:00:00Z", name


def test_numbers_are_aligned_to_the_right_under_a_header_with_the_unit() -> None:
    lines = printed("table", small({"name": "a", "n": 5}, {"name": "bb", "n": 12345.5})).splitlines()
    assert lines[1:] == ["Name         N", "        [GPUs]", "a            5", "bb    12,345.5"]


def test_a_measure_that_no_row_knows_stands_under_its_unit() -> None:
    columns = (Column("name", "Name"), Column("n", "Allocated", "%", digits=1), Column("at", "At", "UTC"))
    table = Table(title="T", columns=columns, rows=({"name": "a", "n": None, "at": None},))
    lines = printed("table", small(sections=(table,))).splitlines()
    assert [line.rstrip() for line in lines[1:]] == [
        "Name  Allocated  At",
        "            [%]  [UTC]",
        "a             -  -",
    ]
    assert "| --- | ---: | --- |" in printed("md", small(sections=(table,)))


def test_color_is_only_where_it_was_asked_for() -> None:
    report = every_report()["recommend"]
    assert "\x1b" not in printed("table", report)
    assert "\x1b[33mwarning" in printed("table", report, color=True)


def test_long_advice_wraps_on_a_terminal_and_nowhere_else() -> None:
    report = small({"name": "word " * 40, "n": 1})
    narrow = printed("table", report, width=60).splitlines()
    assert max(map(len, narrow)) <= 60
    assert sum("word" in line for line in narrow) > 1
    for form in ("table", "wide", "csv", "md"):
        assert sum("word" in line for line in printed(form, report).splitlines()) == 1


def test_on_a_narrow_terminal_advice_goes_under_its_row() -> None:
    report = every_report()["recommend"]
    lines = printed("table", report, width=40).splitlines()
    assert lines[4].startswith("    ")
    assert max(len(line) for line in lines if line.startswith("    ") and "[" not in line) <= 40
    told = " ".join(line.strip() for line in lines)
    assert "Give back 2 GPUs that ml/sleepy holds and does not use" in told


def test_without_unicode_bars_are_ascii() -> None:
    chart = Chart(title="c", unit="GPUs", bars=(Bar("a", 1), Bar("b", 0), Bar("c", 1e-9)), full=2)
    report = small(sections=(chart,))
    lines = printed("table", report, unicode=False).splitlines()
    assert [line.count("#") for line in lines[1:]] == [20, 0, 1]
    assert printed("table", report, unicode=False).isascii()


def test_a_chart_of_an_empty_cluster_has_empty_bars() -> None:
    chart = Chart(title="c", unit="GPUs", bars=(Bar("installed", 0),), full=0)
    for form in PEOPLE:
        assert "installed" in printed(form, small(sections=(chart,)))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def test_html_runs_nothing_and_loads_nothing() -> None:
    for name, report in every_report().items():
        page = _Page()
        text = printed("html", report)
        page.feed(text)
        assert "script" not in page.tags, name
        assert page.links == [], name
        assert "url(" not in text
        assert "@import" not in text


def test_markdown_tables_keep_their_columns_whatever_names_hold() -> None:
    lines = printed("md", every_report()["recommend"]).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_a_code_fence_cannot_be_closed_from_inside() -> None:
    report = small(sections=(Lines(title="c", lines=("echo '````'",), code=True),))
    assert printed("md", report).splitlines()[4] == "`````sh"
    assert printed("md", report).splitlines()[-1] == "`````"


def test_a_registry_of_formats_is_what_the_help_names() -> None:
    assert set(FORMATS.ids()) == {"table", "wide", "json", "jsonl", "yaml", "csv", "md", "html"}


@settings(max_examples=60)
@given(name=st.text(max_size=30), number=st.none() | st.floats(-1e12, 1e12) | st.integers(-(10**9), 10**9))
def test_no_name_reaches_a_terminal_with_its_control_characters(name: str, number: float | None) -> None:
    report = small({"name": name + HOSTILE, "n": number})
    for form in (*PEOPLE, "csv", "yaml", "json", "jsonl"):
        text = printed(form, report)
        assert all(char == "\n" or char.isprintable() for char in text), form
    assert len(list(csv.reader(io.StringIO(printed("csv", report))))) == 2
    assert len(printed("table", report).splitlines()) == 4
