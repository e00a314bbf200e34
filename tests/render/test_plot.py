"""Plots: lines in a page, a table of some points elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gpuwatch.render.plot import drawn
from gpuwatch.render.report import FORMATS, Column, Curve, Plot, Report, Style, Table, sampled

PLOT = Plot(
    title="default: allocated",
    x_title="arrived [%]",
    y_unit="%",
    curves=(
        Curve("fgd", ((0.0, 0.0), (10.0, 9.9), (15.0, 14.0), (20.0, None), (30.0, 25.0), (40.0, 35.5))),
        Curve("<b>&", ((0.0, 1.0), (10.0, 8.0))),
    ),
)


def as_text(form: str, plot: Plot = PLOT) -> str:
    report = Report("t", {"items": []}, (plot,), Table("", (Column("x", "x"),)))
    return FORMATS.get(form)(report, Style(wide=form == "wide"))


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The points of each polyline of the picture proper."""
    found = re.findall(r'points="([^"]*)"', svg)
    return [[tuple(map(float, pair.split(","))) for pair in points.split()] for points in found]


def test_the_picture_is_one_svg_with_its_names_escaped() -> None:
    svg = drawn(PLOT)
    tree = ElementTree.fromstring(svg)
    assert tree.tag == "svg"
    words = [each.text for each in tree.iter("text")]
    assert {"fgd", "<b>&", "arrived [%]", "0", "40"} <= set(words)


def test_what_is_not_known_breaks_the_line() -> None:
    first, second, third, *keys = lines(drawn(PLOT))
    assert [len(each) for each in (first, second, third)] == [3, 2, 2]
    assert len(keys) == 2
    assert [x for x, _ in first] == sorted(x for x, _ in first)
    assert first[0][1] > first[1][1] > first[2][1]  # up is less in a picture
    assert second[0][0] > first[-1][0]


def test_everything_lies_within_the_picture() -> None:
    for curve in lines(drawn(PLOT)):
        assert all(0 <= x <= 720 and 0 <= y <= 300 for x, y in curve)


@pytest.mark.parametrize("points", [(), ((1.0, None),)])
def test_nothing_known_draws_nothing(points: tuple) -> None:
    assert drawn(Plot("t", "x", "%", (Curve("a", points),))) == ""
    assert drawn(Plot("t", "x", "%", ())) == ""


@pytest.mark.parametrize("points", [((5.0, 0.0),), ((5.0, 0.0), (6.0, 0.0)), ((5.0, 1e-9),), ((0.0, 1e9), (1.0, 0.0))])
def test_odd_scales_are_drawn_too(points: tuple) -> None:
    svg = drawn(Plot("t", "x", "%", (Curve("a", points),)))
    assert all(0 <= y <= 300 for curve in lines(svg) for _, y in curve)
    assert svg.count("<line") <= 12


def test_a_drawing_may_begin_later_and_higher() -> None:
    zoomed = drawn(replace(PLOT, draw_from=30.0))
    first, *_ = lines(zoomed)
    assert len(first) == 2  # what lies before is not drawn
    assert first[0][0] == 40.0  # at the left edge
    assert first[0][1] - first[1][1] > 150  # from 25 to 35.5 takes most of the height
    assert drawn(replace(PLOT, draw_from=99.0)) == drawn(PLOT)  # nothing there: all of it
    assert sampled(replace(PLOT, draw_from=30.0)) == sampled(PLOT)


def test_many_curves_look_different() -> None:
    svg = drawn(Plot("t", "x", "%", tuple(Curve(str(at), ((0.0, float(at)),)) for at in range(20))))
    looks = re.findall(r'stroke="(#\w+)"(?: stroke-dasharray="([^"]*)")?></polyline>', svg)
    assert len(looks) == 40
    assert len(set(looks)) == 20


def test_elsewhere_every_tenth_point_is_a_row() -> None:
    table = sampled(PLOT)
    assert [row["x"] for row in table.rows] == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert [row["0"] for row in table.rows] == [0.0, 9.9, None, 25.0, 35.5]
    assert [column.title for column in table.columns] == ["arrived [%]", "fgd", "<b>&"]


def test_each_format_shows_it_in_its_way() -> None:
    assert "<svg" in as_text("html")
    assert "<b>&" not in as_text("html")
    assert "| 10 | 9.9 | 8.0 |" in as_text("md")
    assert "9.9" in as_text("wide")
    assert as_text("table").strip() == ""
