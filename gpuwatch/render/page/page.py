"""Puts the sections together."""

from __future__ import annotations

from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import History
from gpuwatch.render.metrics import Operation
from gpuwatch.render.page.advice import advice_section
from gpuwatch.render.page.html import Content, Markup, tag
from gpuwatch.render.page.sections import (
    forecast_section,
    fragmentation_section,
    health_section,
    scopes_section,
    shapes_section,
    tiles,
    waterfall_section,
)
from gpuwatch.render.page.style import STYLE
from gpuwatch.render.plain import time_text


def page(
    evaluation: Evaluation | None,
    operation: Operation | None = None,
    history: History | None = None,
    *,
    reasons: tuple[str, ...] = (),
    refresh_seconds: int | None = None,
) -> str:
    """The whole page as HTML text.

    `reasons` say why the numbers must not be trusted now and lead the page; `refresh_seconds` makes the browser ask
    again by itself. Without an evaluation the page says only why there is none.
    """
    cluster = evaluation.cluster if evaluation else "gpuwatch"
    head: list[Content] = [
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'),
        tag("title", f"{cluster} · gpuwatch"),
        tag("style", Markup(STYLE)),
    ]
    if refresh_seconds:
        head.append(Markup(f'<meta http-equiv="refresh" content="{int(refresh_seconds)}">'))
    body: list[Content] = [_header(evaluation, operation, cluster, reasons)]
    if reasons:
        told = [tag("b", "Do not rely on this now: "), "; ".join(reasons)]
        body.append(tag("main", tag("section", told, class_="critical", role="alert"), style="margin-top:14px"))
    if evaluation is not None:
        body.append(tag("main", _sections(evaluation, operation, history or History())))
    elif not reasons:
        body.append(tag("main", tag("section", "No evaluation yet.")))
    body.append(_footer())
    return "<!doctype html>\n" + tag("html", [tag("head", head), tag("body", body)], lang="en") + "\n"


def _sections(evaluation: Evaluation, operation: Operation | None, history: History) -> list[Content]:
    return [
        tiles(evaluation),
        tag(
            "div",
            [
                tag("div", [waterfall_section(evaluation.waterfall), fragmentation_section(evaluation)]),
                shapes_section(evaluation),
            ],
            class_="two",
        ),
        scopes_section(evaluation),
        advice_section(evaluation),
        forecast_section(evaluation, history),
        health_section(evaluation, operation),
    ]


def _header(
    evaluation: Evaluation | None, operation: Operation | None, cluster: str, reasons: tuple[str, ...]
) -> Markup:
    parts: list[Content] = [tag("h1", cluster), tag("span", "GPU capacity, counted honestly", class_="soft")]
    told = []
    if operation is not None:
        word, look = ("not ready", "critical") if reasons or not operation.ready else ("ready", "good")
        parts.append(tag("span", word, class_=f"chip {look}"))
    if evaluation is not None:
        told.append(f"snapshot of {time_text(evaluation.snapshot_taken_at.replace(microsecond=0))}")
        if operation is not None:
            told.append(f"{max(0.0, (operation.now - evaluation.snapshot_taken_at).total_seconds()):.0f} s old")
        told.append(f"evaluation {evaluation.id}")
    parts.append(tag("span", " · ".join(told), class_="meta"))
    return tag("header", parts)


def _footer() -> Markup:
    links = [("/api/v1/recommendations", "recommendations"), ("/metrics", "metrics"), ("/docs", "API")]
    named: list[Content] = ["gpuwatch runs none of these commands; a person does. "]
    for at, (where, word) in enumerate(links):
        named += [" · " if at else "", tag("a", word, href=where)]
    return tag("footer", named)
