"""Routes of the HTML pages. They load nothing: the policy sent with them forbids it to the browser."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

import gpuwatch
from gpuwatch.daemon.operation import operation
from gpuwatch.daemon.state import DaemonState
from gpuwatch.render.page import page
from gpuwatch.render.page.html import Markup, table, tag
from gpuwatch.render.page.style import STYLE

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SHORTEST_REFRESH_SECONDS = 15  # a reader who opened a detail should get to read it


def pages(state: DaemonState) -> APIRouter:
    """The router of the pages over `state`."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def first() -> HTMLResponse:
        view, now = state.view, state.readiness()
        refresh = max(_SHORTEST_REFRESH_SECONDS, round(state.interval_seconds))
        # While it starts there is something new within seconds.
        soon = refresh if view.evaluation else 2
        text = page(view.evaluation, operation(state, view), view.history, reasons=now.reasons, refresh_seconds=soon)
        return HTMLResponse(text, headers=_HEADERS)

    @router.get("/docs")
    def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(_docs(request.app.openapi()), headers=_HEADERS)

    return router


def _docs(schema: dict[str, Any]) -> str:
    rows = [
        (
            tag("code", f"{method.upper()} {path}"),
            entry.get("summary", ""),
            ", ".join(each["name"] for each in entry.get("parameters", ())),
        )
        for path, methods in schema["paths"].items()
        for method, entry in methods.items()
    ]
    body = [
        tag("header", [tag("h1", "gpuwatch API"), tag("span", gpuwatch.__version__, class_="soft")]),
        tag(
            "main",
            tag(
                "section",
                [
                    tag("p", ["The full description is ", tag("a", "/openapi.json", href="/openapi.json"), "."]),
                    table(("request", "what it gives", "parameters"), rows, numbers_from=3),
                ],
                style="margin-top:16px",
            ),
        ),
    ]
    head = [Markup('<meta charset="utf-8">'), tag("title", "gpuwatch API"), tag("style", Markup(STYLE))]
    return "<!doctype html>\n" + tag("html", [tag("head", head), tag("body", body)], lang="en")
