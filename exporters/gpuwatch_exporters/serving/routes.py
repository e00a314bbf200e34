"""What each address answers: the page, health, the landing page, and the actions of the exporter."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable
from typing import Protocol

from gpuwatch import __version__
from gpuwatch.errors import GpuwatchError
from gpuwatch_exporters.exposition import CONTENT_TYPE
from gpuwatch_exporters.serving.cycles import Cycles
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.page import Pages
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from gpuwatch_exporters.serving.web.message import Request, Response
from gpuwatch_exporters.serving.web.settings import Answer

_HTML_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
}
_NOT_HERE = Response(404, b"not found; see /\n")


class Guard(Protocol):
    """Who may ask."""

    def allows(self, request: Request) -> bool | Callable[[], bool]:
        """Whether the request carries what is asked for; a callable where finding out takes long."""
        ...

    def too_many(self) -> bool:
        """Whether the limit of requests is reached; each call counts as one."""
        ...

    def knows(self, request: Request) -> bool:
        """Whether an allowed request comes from somebody who proved who they are."""
        ...


class Routes:
    """The handler of the server. Called on its thread, so that nothing here may wait."""

    def __init__(
        self, exporter: Exporter, cycles: Cycles, pages: Pages, metrics: SelfMetrics, guard: Guard, *, loopback: bool
    ) -> None:
        self._exporter = exporter
        self._cycles = cycles
        self._pages = pages
        self._metrics = metrics
        self._guard = guard
        self._loopback = loopback  # only this machine can connect
        self._acting = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        """The answer, or a callable that finds it."""
        # Whoever watches the process has no password, and learns no more than one bit here.
        if request.path in ("/-/healthy", "/-/ready"):
            return self._read_only(request, self._health)
        if self._guard.too_many():
            return self._counted(request, Response(429, b"too many requests\n", headers={"Retry-After": "1"}))
        allowed = self._guard.allows(request)
        if isinstance(allowed, bool):
            return self._counted(request, self._inside(request) if allowed else _unauthorized())
        asked = allowed

        def found_out() -> Response:
            answer = self._inside(request) if asked() else _unauthorized()
            return _settled(self._counted(request, answer))

        return found_out

    def _inside(self, request: Request) -> Answer:
        path = request.path
        if path == "/metrics":
            return self._read_only(request, self._page)
        if path == "/":
            # The exporter's notes may have to wait for its cycle.
            return lambda: self._read_only(request, self._landing)
        name = path.removeprefix("/-/")
        action = self._exporter.actions().get(name) if name != path else None
        return _NOT_HERE if action is None else self._act(request, action)

    def _counted(self, request: Request, answer: Answer) -> Answer:
        if request.path == "/metrics" and isinstance(answer, Response):
            self._metrics.scraped(answer.status)
        return answer

    def _read_only(self, request: Request, answer: Callable[[Request], Response]) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"GET or HEAD\n", headers={"Allow": "GET, HEAD"})
        return answer(request)

    def _page(self, request: Request) -> Response:
        if request.takes_gzip():
            body = self._pages.current(packed=True).packed()
            return Response(200, body, CONTENT_TYPE, {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
        return Response(200, self._pages.current().plain, CONTENT_TYPE, {"Vary": "Accept-Encoding"})

    def _health(self, request: Request) -> Response:
        if request.path == "/-/healthy":
            return Response(200, b"healthy\n")
        return Response(200, b"ready\n") if self._pages.ready() else Response(503, b"not ready\n")

    def _landing(self, request: Request) -> Response:
        return Response(200, self._landing_html().encode(), "text/html; charset=utf-8", _HTML_HEADERS)

    def _landing_html(self) -> str:
        name, tally = html.escape(self._exporter.name), self._cycles.tally
        told = html.escape(self._exporter.help[:1].upper() + self._exporter.help[1:].removesuffix("."))
        lines = list(self._exporter.notes())
        lines.append(f"{tally.cycles} cycles, {tally.failures} of them failed")
        if tally.last_success_at is not None:
            lines.append(f"last good cycle {max(0.0, time.time() - tally.last_success_at):.0f} s ago")
        if not self._pages.ready():
            lines.append("no values are served now")
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>gpuwatch {name} exporter</title>'
            "<style>body{font:16px system-ui,sans-serif;margin:2rem;max-width:60rem}</style></head><body>"
            f"<h1>gpuwatch {name} exporter</h1><p>{told}. Version {__version__}.</p>"
            f'<p><a href="/metrics">metrics</a> · <a href="/-/healthy">healthy</a> · <a href="/-/ready">ready</a></p>'
            f"<ul>{items}</ul></body></html>\n"
        )

    def _act(self, request: Request, action: Callable[[], str]) -> Answer:
        if request.method != "POST":
            return Response(405, b"POST\n", headers={"Allow": "POST"})
        # A page in the browser of somebody on this machine must not be able to do it; only browsers send these.
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            return Response(403, b"not from a browser\n")
        if not (self._loopback or self._guard.knows(request)):
            return Response(
                403,
                b"only with a password or client certificate (--web.config.file), or when listening on 127.0.0.1; "
                b"a signal to the process does the same\n",
            )

        def act() -> Response:
            if not self._acting.acquire(blocking=False):
                return Response(409, b"another action is still under way\n")
            try:
                told, status = action(), 200
            except GpuwatchError as err:
                told, status = err.what, 500
            finally:
                self._acting.release()
            self._cycles.soon()
            return Response(status, f"{told}\n".encode())

        return act


def _unauthorized() -> Response:
    return Response(401, b"who are you?\n", headers={"WWW-Authenticate": 'Basic realm="gpuwatch", charset="UTF-8"'})


def _settled(answer: Answer) -> Response:
    return answer if isinstance(answer, Response) else answer()
