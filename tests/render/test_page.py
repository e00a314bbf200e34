"""The page: whole, safe against what names may hold, and honest about what is not known."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from gpuwatch.model.evaluation import Command, Evaluation, Waterfall
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.snapshot import Finding
from gpuwatch.render.metrics import Operation
from gpuwatch.render.page import page
from gpuwatch.render.page.charts import bar, demand_chart
from gpuwatch.render.page.html import Markup, render, tag
from tests.builders import NOW
from tests.evaluations import a_forecast, advice, an_evaluation

VOID = {"meta"}
EVIL = "<script>alert('x')</script>\"'&"


class Strict(HTMLParser):
    """Collects tags and refuses what does not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text: str) -> Strict:
    reader = Strict()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_is_whole_and_loads_nothing():
    text = page(an_evaluation(), Operation(now=NOW, ready=True))
    reader = parsed(text)
    assert "script" not in reader.tags
    assert not {"img", "link", "iframe", "object"} & reader.tags
    assert all(name not in ("src", "srcset") and not name.startswith("on") for name, _ in reader.attributes)
    hrefs = [target for name, target in reader.attributes if name == "href"]
    assert hrefs
    assert all(target.startswith("/") and not target.startswith("//") for target in hrefs)
    assert "url(" not in text


def test_it_says_what_the_evaluation_says():
    text = page(an_evaluation(), Operation(now=NOW + timedelta(seconds=7), ready=True))
    for told in (
        "abc123",
        "7 s old",
        "25.0",
        "job ml/r1 holds 3 GPUs",
        "kubectl delete pod r1",
        "kubectl apply -f r1.yaml",
    ):
        assert told in text
    assert "max_over_time(x[30m])" in text
    assert "needs 90 h more" in text
    assert "1 cordoned, 1 unhealthy" in text
    assert "cost is not known: no price" in text


def test_activity_that_nobody_measured_is_a_dash_not_a_zero():
    unmeasured = Waterfall(
        installed_milligpu=8000,
        healthy_milligpu=8000,
        schedulable_milligpu=8000,
        allocated_milligpu=5000,
        activity_unknown_milligpu=5000,
        free_milligpu=3000,
    )
    text = page(Evaluation(id="x", cluster="c", snapshot_taken_at=NOW, waterfall=unmeasured))
    assert "<b>–</b><span>idle-held</span><small>activity of 5 unknown</small>" in text


def test_what_is_out_of_order_in_the_daemon_is_shown():
    broken = Finding(code="store_locked", severity="warning", subject="store", detail="database is locked")
    assert "database is locked" in page(an_evaluation(), Operation(now=NOW, findings=(broken,)))


def test_nothing_that_a_name_holds_becomes_html():
    evil = advice(EVIL, summary=EVIL, facts={EVIL: EVIL}, unlocks=(EVIL,))
    evaluation = an_evaluation(
        id=EVIL,
        cluster=EVIL,
        waterfall_scopes=(Waterfall(pool=EVIL),),
        recommendations=(evil,),
        forecasts=(a_forecast(pool=EVIL),),
        findings=(Finding(code=EVIL, severity="warning", subject=EVIL, detail=EVIL),),
    )
    text = page(evaluation, Operation(now=NOW), reasons=(EVIL,))
    assert "<script" not in text
    assert "script" not in parsed(text).tags


def test_no_name_reaches_the_page_with_invisible_characters():
    odd = "a\x1b[31m\u202eb\x00c\nkubectl delete all"
    evaluation = an_evaluation(
        cluster=odd,
        recommendations=(advice(odd, summary=odd, commands=(Command(run=f"run '{odd}'", undo="undo", note=odd),)),),
        findings=(Finding(code=odd, severity="warning", subject=odd, detail=odd),),
    )
    text = page(evaluation, Operation(now=NOW), reasons=(odd,))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert "\nkubectl delete all" not in text  # a line of its own would look like a command of ours


def test_an_index_that_is_not_known_is_a_dash_with_its_reason():
    report = an_evaluation().fragmentation
    none = replace(report, overall=replace(report.overall, fragmentation_index=None, reason="nothing_free"))
    text = page(an_evaluation(fragmentation=none))
    assert "<b>–</b>" in text
    assert "nothing free" in text
    assert "<b>0.0</b>" not in text


@pytest.mark.parametrize(
    "gone", [f.name for f in fields(Evaluation) if f.name not in ("id", "cluster", "snapshot_taken_at")]
)
def test_a_page_stands_without_any_one_part(gone):
    empty = None if gone in ("waterfall", "fragmentation") else ()
    parsed(page(replace(an_evaluation(), **{gone: empty})))


def test_an_evaluation_of_nothing_has_a_page():
    text = page(Evaluation(id="x", cluster="c", snapshot_taken_at=NOW, waterfall=Waterfall()))
    assert "Nothing is installed." in text
    assert "No rule has anything to advise." in text


def test_without_an_evaluation_it_says_why():
    assert "no evaluation yet" in page(None, reasons=("no evaluation yet",))
    assert "No evaluation yet." in page(None)


def test_very_many_recommendations_are_cut_and_counted():
    text = page(an_evaluation(recommendations=tuple(advice(f"r{n}") for n in range(60))))
    assert text.count("<article") == 50
    assert "and 10 more" in text


def test_a_bar_never_draws_beyond_its_whole():
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", bar([("active", 3), ("idle", 0), ("free", 1)], 8))]
    assert widths == [37.5, 12.5]
    assert "<i" not in bar([("active", 3)], 0)


def test_a_gap_in_the_past_breaks_the_line():
    past = DemandSeries(
        pool="a",
        kind="all",
        start_at=NOW - timedelta(hours=5),
        step_seconds=3600,
        values=(1.0, 2.0, None, 3.0, 4.0),
    )
    svg = demand_chart(a_forecast(), past, NOW)
    assert svg.count('class="past"') == 2
    assert svg.count("<polygon") == 2
    points = [float(n) for n in re.findall(r"-?\d+\.\d+", " ".join(re.findall(r'points="([^"]*)"', svg)))]
    assert all(-0.1 <= n <= 300.1 for n in points)


def test_a_forecast_of_zero_and_a_history_alone_can_be_drawn():
    flat = a_forecast(steps=tuple(replace(s, mean_gpus=0.0, intervals={}) for s in a_forecast().steps))
    assert "polyline" in demand_chart(flat, None, NOW)
    assert demand_chart(a_forecast(steps=()), None, NOW) == ""
    assert "<svg" in page(an_evaluation(), history=History())


def test_only_markup_is_left_unescaped():
    assert render(["<a>", Markup("<b>"), None, 3]) == "&lt;a&gt;<b>3"
    assert tag("i", "x", title='"', class_="y", data_z=None) == '<i title="&quot;" class="y">x</i>'
