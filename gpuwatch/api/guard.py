"""What every request passes before any route sees it: bearer token, body size, body time."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwatch.api.problems import ProblemError, problem_response
from gpuwatch.api.tokens import Tokens

MAX_BODY_BYTES = 8 * 2**20
MAX_BODY_WAIT_SECONDS = 10.0
_OPEN_PATHS = ("/healthz", "/readyz")  # an orchestrator's probes carry no token


class Guard:
    """ASGI middleware. The body is read whole, up to the limit, before the application runs."""

    def __init__(self, app: ASGIApp, tokens: Tokens | None, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._app, self._tokens, self._max = app, tokens, max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_token(Request(scope))
            body = await asyncio.wait_for(self._body(Request(scope), receive), MAX_BODY_WAIT_SECONDS)
        except ProblemError as problem:
            headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else {}
            await problem_response(problem, headers)(scope, receive, send)
            return
        except TimeoutError:
            slow = ProblemError(408, "body_timeout", f"the body did not arrive within {MAX_BODY_WAIT_SECONDS:.0f} s")
            await problem_response(slow)(scope, receive, send)
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        if scope["method"] == "HEAD":  # what a GET would answer; the server keeps the body back
            scope = {**scope, "method": "GET"}
        await self._app(scope, replay, send)

    def _check_token(self, request: Request) -> None:
        if self._tokens is None or request.url.path in _OPEN_PATHS:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self._tokens.holder(token.strip()) is None:
            raise ProblemError(401, "unauthorized", "send a known token: Authorization: Bearer TOKEN")

    async def _body(self, request: Request, receive: Receive) -> bytes:
        announced = request.headers.get("content-length", "0")
        too_large = ProblemError(413, "body_too_large", f"a body may have {self._max} bytes")
        if announced.isdigit() and int(announced) > self._max:
            raise too_large
        parts: list[bytes] = []
        size = 0
        more = request.method not in ("GET", "HEAD")
        while more:
            message = await receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max:
                raise too_large
            more = message.get("more_body", False)
        return b"".join(parts)
