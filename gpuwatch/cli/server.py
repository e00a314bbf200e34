"""A running daemon as an input: strict reading of what it answers, and every fault of it in three lines."""

from __future__ import annotations

import json
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from gpuwatch.cli.exits import UsageError
from gpuwatch.errors import InputError, SourceError
from gpuwatch.model.codec import load_snapshot
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.placement import PlacementAdvice

if TYPE_CHECKING:
    from gpuwatch.model.snapshot import ClusterSnapshot

T = TypeVar("T")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HINTS = {
    401: "give the token with --token-file",
    403: "the token lacks the right to read; ask for another",
    404: "check the URL: it should be the daemon's address, without a path",
    503: "wait for the next evaluation, or look at the daemon's /readyz",
}


class Server:
    """The API of one daemon at `url` (scheme and host; a path prefix is kept)."""

    def __init__(self, url: str, timeout_seconds: float = 10.0, token_file: Path | None = None) -> None:
        self._url = url.rstrip("/")
        try:
            parsed = httpx.URL(self._url)
        except httpx.InvalidURL as err:
            raise UsageError(f"--server {url!r} is not a URL ({err})", todo=_example()) from err
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise UsageError(f"--server {url!r} is not an http or https URL", todo=_example())
        self._loopback = parsed.host in _LOOPBACK
        self._timeout_seconds = timeout_seconds
        self._token_file = token_file

    def evaluation(self) -> Evaluation:
        """The daemon's last evaluation. SourceError when there is none that can be read."""
        text = self._ask("GET", "/api/v1/evaluation")
        return self._decode(Evaluation, text)

    def snapshot(self) -> ClusterSnapshot:
        """The snapshot behind the last evaluation."""
        origin = f"{self._url}/api/v1/snapshot"
        try:
            return load_snapshot(self._ask("GET", "/api/v1/snapshot"), origin=origin)
        except InputError as err:
            raise SourceError(err.what, todo=_same_release(), code="bad_answer") from err

    def place(self, request: dict[str, Any]) -> tuple[PlacementAdvice, dict[str, Any]]:
        """The answer to a what-if, and the document it came in."""
        text = self._ask("POST", "/api/v1/placements", body=request)
        document = self._json(text)
        known = {name: document[name] for name in PlacementAdvice.__dataclass_fields__ if name in document}
        return self._decode(PlacementAdvice, json.dumps(known)), document

    @cached_property
    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json, application/problem+json"}
        if self._token_file is not None:
            try:
                token = self._token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as err:
                raise InputError(f"cannot read the token in {self._token_file}: {err}") from err
            if not token or not token.isascii() or any(char.isspace() for char in token):
                raise InputError(f"{self._token_file} holds no token", todo="put the token alone on one line")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> str:
        url = self._url + path
        try:
            # A proxy from the environment cannot reach this machine's own loopback.
            with httpx.Client(timeout=self._timeout_seconds, trust_env=not self._loopback) as client:
                request = client.build_request(method, url, json=body, headers=self._headers)
                answer = self._whole(client, request)
        except httpx.TimeoutException as err:
            raise SourceError(
                f"{self._url} did not answer within {self._timeout_seconds:g} s",
                tried=f"{method} {url}",
                todo="raise --timeout, or see whether the daemon hangs",
                code="timeout",
            ) from err
        except httpx.HTTPError as err:
            raise SourceError(
                f"cannot reach {self._url}: {err}",
                tried=f"{method} {url}",
                todo="start the daemon (gpuwatch serve --config FILE, or gpuwatch demo), or check the address",
                code="unreachable",
            ) from err
        if answer.status_code != httpx.codes.OK:
            told, todo = _problem(answer)
            raise SourceError(
                f"{self._url} answered {answer.status_code}: {told}",
                tried=f"{method} {url}",
                todo=todo or _HINTS.get(answer.status_code, "see the daemon's log"),
                code="http_status",
            )
        if "json" not in answer.headers.get("content-type", ""):
            kind = answer.headers.get("content-type", "no content type").partition(";")[0]
            raise SourceError(
                f"{self._url} answered {kind} where JSON was due",
                tried=f"{method} {url}",
                todo="check that a gpuwatch daemon listens there (its default port is 9438)",
                code="not_json",
            )
        return answer.text

    def _whole(self, client: httpx.Client, request: httpx.Request) -> httpx.Response:
        """The answer with its body. The library's limit is per read, which a dripping body would pass for ever."""
        deadline = time.monotonic() + self._timeout_seconds
        answer = client.send(request, stream=True)
        try:
            parts = []
            for part in answer.iter_raw():
                parts.append(part)
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the body came too slowly", request=request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=b"".join(parts), request=request)
        finally:
            answer.close()

    def _json(self, text: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except ValueError as err:
            raise SourceError(f"{self._url} answered broken JSON ({err})", code="not_json") from err
        if not isinstance(document, dict):
            raise SourceError(f"{self._url} answered JSON that is no document", code="bad_answer")
        return document

    def _decode(self, cls: type[T], text: str) -> T:
        try:
            answer: T = TypeAdapter(cls).validate_json(text)
            return answer
        except ValidationError as err:
            fault = err.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the document"
            raise SourceError(
                f"{self._url} answered something this release cannot read ({where}: {fault['msg']})",
                todo=_same_release(),
                code="bad_answer",
            ) from err


def _problem(answer: httpx.Response) -> tuple[str, str | None]:
    """The words of a problem+json answer, else what kind of answer it was; and what it says to do, if it does."""
    try:
        body = answer.json()
    except ValueError:
        kind = answer.headers.get("content-type", "no content type")
        return f"{answer.reason_phrase or 'no reason'} ({kind})", None
    if not isinstance(body, dict):
        return answer.reason_phrase, None
    said = [str(body[key]) for key in ("title", "detail") if body.get(key)]
    return ": ".join(dict.fromkeys(said)) or answer.reason_phrase, str(body["todo"]) if body.get("todo") else None


def _example() -> str:
    return "write for example --server http://127.0.0.1:9438"


def _same_release() -> str:
    return "run the same release of gpuwatch here and there (gpuwatch --version)"
