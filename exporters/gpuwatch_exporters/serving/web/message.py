"""Requests as read and answers as written: bytes in, values out, and back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

MAX_HEAD_BYTES = 16_384
MAX_BODY_BYTES = 65_536
_PHRASES = {each.value: each.phrase for each in HTTPStatus}
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class BadRequestError(Exception):
    """A request that is answered with `status` and the end of the connection."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status
        self.told = told


@dataclass(frozen=True, slots=True)
class Request:
    """The head of one request. Header names in lower case; a header given twice is joined with a comma.

    certified: the client showed a certificate that our authority signed.
    """

    method: str
    path: str  # without the query
    headers: Mapping[str, str]
    keep_alive: bool
    body_bytes: int = 0
    certified: bool = False

    def takes_gzip(self) -> bool:
        """Whether Accept-Encoding names gzip (or *) without q=0."""
        for part in self.headers.get("accept-encoding", "").lower().split(","):
            coding, _, weight = part.partition(";")
            if coding.strip() in ("gzip", "*"):
                return weight.replace(" ", "").rstrip("0.") != "q="
        return False


@dataclass(frozen=True, slots=True)
class Response:
    """One answer; `headers` beyond those of length, type, date and connection."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_head(head: bytes, certified: bool = False) -> Request:
    """The request of `head`, its bytes up to the empty line. BadRequestError on what is no HTTP/1.0 or 1.1."""
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/"):
        raise BadRequestError(400, "the first line is no request")
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequestError(505, "HTTP/1.0 and HTTP/1.1 are spoken here")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or not _TOKEN.issuperset(name):
            raise BadRequestError(400, "a header line that is none")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Request(
        method, _path(target), headers, _keeps(version, headers), _body_bytes(headers), certified
    )  # fmt: skip


def render_head(response: Response, keep_alive: bool, extra: bytes = b"") -> bytes:
    """Status line and headers up to the empty line. `extra`: whole header lines that every answer carries."""
    lines = [
        f"HTTP/1.1 {response.status} {_PHRASES[response.status]}\r\nDate: {_date()}\r\n"
        f"Content-Type: {response.content_type}\r\nContent-Length: {len(response.body)}\r\n"
    ]
    lines += [f"{name}: {value}\r\n" for name, value in response.headers.items()]
    if not keep_alive:
        lines.append("Connection: close\r\n")
    return "".join(lines).encode("latin-1") + extra + b"\r\n"


def _path(target: str) -> str:
    if target.startswith("/"):
        return target.partition("?")[0]
    scheme, _, rest = target.partition("://")
    if scheme in ("http", "https"):  # a proxy's form
        return "/" + rest.partition("/")[2].partition("?")[0]
    raise BadRequestError(400, "the target is no path")


def _keeps(version: str, headers: Mapping[str, str]) -> bool:
    """A client of HTTP/1.0 may take the end of the connection for that of the answer, whatever it asks for."""
    asked = [each.strip() for each in headers.get("connection", "").lower().split(",")]
    return version == "HTTP/1.1" and "close" not in asked


def _body_bytes(headers: Mapping[str, str]) -> int:
    """Length of the body, which nothing here reads but which has to be stepped over."""
    if "transfer-encoding" in headers:
        raise BadRequestError(411, "a body needs a Content-Length here")
    told = headers.get("content-length", "0")
    if not told.isascii() or not told.isdigit() or len(told) > 9:
        raise BadRequestError(400, "Content-Length is no number")
    if int(told) > MAX_BODY_BYTES:
        raise BadRequestError(413, "the body is too large")
    return int(told)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_dated: tuple[int, str] = (0, "")


def _date() -> str:
    """The Date header, made once a second."""
    global _dated
    now = int(time.time())
    if _dated[0] != now:
        at = time.gmtime(now)  # strftime would speak the language of the locale
        _dated = (
            now,
            f"{_DAYS[at.tm_wday]}, {at.tm_mday:02d} {_MONTHS[at.tm_mon - 1]} {at.tm_year} "
            f"{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d} GMT",
        )
    return _dated[1]
