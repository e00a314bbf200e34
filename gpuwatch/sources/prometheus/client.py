"""The HTTP API of Prometheus, and a named cause for every way in which it can fail."""

from __future__ import annotations

import json
import math
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from gpuwatch.errors import SettingsError, SourceError
from gpuwatch.sources.settings import PrometheusSettings, safe_url

_BUSY = (429, 503)


@dataclass(frozen=True, slots=True)
class Row:
    """One series of an answer: labels without the name, and (Unix seconds, value) points; instant queries give one."""

    metric: str
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class PrometheusClient:
    """Asks queries. Use as a context manager; safe to share between threads."""

    def __init__(self, settings: PrometheusSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._sleep = sleep
        self._shown = safe_url(settings.url)
        self._http = httpx.Client(
            timeout=httpx.Timeout(settings.timeout_seconds),
            verify=_tls(settings),
            limits=httpx.Limits(max_connections=settings.max_concurrency),
            follow_redirects=False,  # a redirect of a POST loses its form, and a login page is no answer
        )

    def __enter__(self) -> PrometheusClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def instant(self, name: str, query: str, at: datetime | None) -> list[Row]:
        """The answer of `query` at `at` (None: the server's own now). `name` is what errors call the query."""
        form = {"query": query, "timeout": f"{self._settings.timeout_seconds:g}s"}
        if at is not None:
            form["time"] = f"{at.timestamp():.3f}"
        return self._rows(name, self._ask(name, "query", form))

    def range(self, name: str, query: str, start: datetime, end: datetime, step_seconds: int) -> list[Row]:
        """The answer of `query` on the grid start, start + step ... up to `end`, both included."""
        form = {
            "query": query,
            "start": f"{start.timestamp():.3f}",
            "end": f"{end.timestamp():.3f}",
            "step": str(step_seconds),
            "timeout": f"{self._settings.timeout_seconds:g}s",
        }
        return self._rows(name, self._ask(name, "query_range", form))

    def _ask(self, name: str, endpoint: str, form: dict[str, str]) -> dict[str, Any]:
        for attempt in range(self._settings.retries + 1):
            status, body, headers = self._post(name, endpoint, form)
            if status not in _BUSY or attempt == self._settings.retries:
                break
            self._sleep(self._pause(attempt, headers.get("retry-after")))
        answer = self._json(name, status, body)
        if status // 100 != 2 or answer.get("status") != "success":
            raise self._refused(name, status, answer)
        warnings = answer.get("warnings")
        if warnings and not self._settings.accept_partial:
            raise self._error(
                name,
                "partial",
                f"answered with warnings, so the answer may lack parts: {_clip(str(warnings))}",
                "mend the store that did not reply, or set accept_partial",
            )
        data = answer.get("data")
        if not isinstance(data, dict):
            raise self._error(name, "bad_answer", "answered success without data", _CHECK_URL)
        return data

    def _post(self, name: str, endpoint: str, form: dict[str, str]) -> tuple[int, bytes, httpx.Headers]:
        deadline = time.monotonic() + self._settings.timeout_seconds
        url = f"{self._settings.url.rstrip('/')}/api/v1/{endpoint}"
        body = bytearray()
        try:
            with self._http.stream("POST", url, data=form, headers=self._headers()) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > self._settings.max_response_bytes:
                        limit = f"answered more than {self._settings.max_response_bytes} bytes"
                        raise self._error(name, "too_large", limit, "narrow it with matchers, or raise the limit")
                    if time.monotonic() > deadline:  # the library's limit is per read; a dripping body would pass it
                        raise self._slow(name)
                return response.status_code, bytes(body), response.headers
        except httpx.TimeoutException:
            raise self._slow(name) from None
        except (httpx.RemoteProtocolError, httpx.DecodingError) as err:
            cut = f"broke off or garbled its answer ({err})"
            raise self._error(name, "bad_answer", cut, "look at the server's log and at proxies before it") from None
        except (httpx.TransportError, httpx.InvalidURL) as err:
            raise self._error(
                name, "unreachable", f"cannot be reached ({err})", "check address, port, network and TLS settings"
            ) from None

    def _headers(self) -> dict[str, str]:
        headers = dict(self._settings.headers)
        if self._settings.tenant:
            headers["X-Scope-OrgID"] = self._settings.tenant
        if self._settings.bearer_token_file:
            headers["Authorization"] = f"Bearer {_read(self._settings.bearer_token_file)}"
        return headers

    def _pause(self, attempt: int, retry_after: str | None) -> float:
        asked = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        return min(self._settings.timeout_seconds, max(asked, self._settings.backoff_seconds * 2.0**attempt))

    def _json(self, name: str, status: int, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            start = _clip(body[:80].decode("utf-8", "replace"))
            if status // 100 != 2:
                raise self._error(name, "http_status", f"answered HTTP {status}: {start}", _hint(status)) from None
            cut_off = body.lstrip()[:1] in (b"{", b"[")
            why = "broke off its JSON" if cut_off else f"answered no JSON but {start!r}"
            raise self._error(name, "bad_answer" if cut_off else "not_json", why, _CHECK_URL) from None
        if not isinstance(answer, dict):
            raise self._error(name, "bad_answer", "answered JSON of another kind", _CHECK_URL)
        return answer

    def _refused(self, name: str, status: int, answer: dict[str, Any]) -> SourceError:
        kind, text = answer.get("errorType"), _clip(str(answer.get("error", "no reason given")))
        if kind == "timeout":
            return self._error(name, "timeout", f"gave up on the query: {text}", _TODO_SLOW)
        if kind in ("bad_data", "execution", "canceled"):
            return self._error(name, "query_error", f"refused the query ({kind}): {text}", "report the query and text")
        return self._error(name, "http_status", f"answered HTTP {status}: {text}", _hint(status))

    def _rows(self, name: str, data: dict[str, Any]) -> list[Row]:
        kind, result = data.get("resultType"), data.get("result")
        try:
            if kind == "scalar":
                return [Row("", {}, (_point(result),))]
            if kind not in ("vector", "matrix") or not isinstance(result, list):
                raise ValueError(f"result type {kind!r}")
            return [_row(item, kind) for item in result]
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            wrong = f"answered data of an unknown form ({_clip(str(err))})"
            raise self._error(name, "bad_answer", wrong, _CHECK_URL) from None

    def _slow(self, name: str) -> SourceError:
        limit = f"did not answer within {self._settings.timeout_seconds:g} s"
        return self._error(name, "timeout", limit, _TODO_SLOW)

    def _error(self, name: str, code: str, what: str, todo: str) -> SourceError:
        return SourceError(f"{self._shown} {what}", tried=f"query {name}", todo=todo, code=code)


_CHECK_URL = "check that the address is that of a Prometheus API, not of a proxy's or a login page"
_TODO_SLOW = "raise timeout_seconds, narrow the matchers, or shorten window_seconds"
_HINTS = {
    401: "give a bearer_token_file",
    403: "give a token that may read",
    404: _CHECK_URL,
    422: "see the text above",
}


def _hint(status: int) -> str:
    return _HINTS.get(status, "look at the server's log" if status >= 500 else _CHECK_URL)


def _row(item: dict[str, Any], kind: str) -> Row:
    labels = {str(key): str(text) for key, text in item["metric"].items()}
    points = [item["value"]] if kind == "vector" else item["values"]
    return Row(labels.pop("__name__", ""), labels, tuple(_point(point) for point in points))


def _point(point: Any) -> tuple[float, float]:
    at, number = point
    if not isinstance(number, str):  # the API writes numbers as texts, NaN and +Inf among them
        raise ValueError("a sample that is not a text")
    return float(at), float(number) if number else math.nan


def _clip(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else flat[:197] + "..."


def _tls(settings: PrometheusSettings) -> bool | ssl.SSLContext:
    if not settings.verify_tls:
        return False
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as err:
        raise SettingsError(f"prometheus ca_file {settings.ca_file} cannot be read: {err}") from None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"prometheus bearer_token_file {path} cannot be read: {err}") from None
