"""Every error as application/problem+json (RFC 9457) with a stable `code`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from gpuwatch.errors import GpuwatchError, InputError

log = logging.getLogger("gpuwatch.api")


class ProblemError(Exception):
    """An answer that is an error. `more` are further members of the problem document."""

    def __init__(self, status: int, code: str, detail: str, *, retry_after: int | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.retry_after, self.more = retry_after, more


def problem_response(problem: ProblemError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The problem as a response, with Retry-After where it is known."""
    body: dict[str, Any] = {
        "type": f"urn:gpuwatch:problem:{problem.code}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        **problem.more,
    }
    sent = dict(headers or {})
    if problem.retry_after is not None:
        body["retry_after"] = problem.retry_after
        sent["Retry-After"] = str(problem.retry_after)
    return JSONResponse(body, problem.status, sent, media_type="application/problem+json")


_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}


def install(app: FastAPI) -> None:
    """Makes every error of `app` a problem document."""

    async def own(_: Request, err: Exception) -> JSONResponse:
        assert isinstance(err, ProblemError)
        return problem_response(err)

    async def http(_: Request, err: Exception) -> JSONResponse:
        assert isinstance(err, HTTPException)
        code = _CODES.get(err.status_code, "http_error")
        return problem_response(ProblemError(err.status_code, code, str(err.detail)), err.headers)

    async def invalid(_: Request, err: Exception) -> JSONResponse:
        assert isinstance(err, RequestValidationError)
        faults = [{"at": ".".join(map(str, each["loc"])), "fault": each["msg"]} for each in err.errors()]
        detail = "; ".join(f"{each['at']}: {each['fault']}" for each in faults[:5])
        return problem_response(ProblemError(422, "bad_request", detail, faults=faults))

    async def told(_: Request, err: Exception) -> JSONResponse:
        assert isinstance(err, GpuwatchError)
        status = 422 if isinstance(err, InputError) else 500
        return problem_response(ProblemError(status, err.code, err.what, todo=err.todo))

    async def broken(_: Request, err: Exception) -> JSONResponse:
        log.error("a request broke", exc_info=err)  # the cause is for the log, not for whoever asked
        return problem_response(ProblemError(500, "internal", "gpuwatch broke on this request; its log says where"))

    app.add_exception_handler(ProblemError, own)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(GpuwatchError, told)
    app.add_exception_handler(Exception, broken)
