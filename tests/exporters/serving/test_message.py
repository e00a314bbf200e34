"""Heads of requests: what is read, what is refused, and what an answer begins with."""

from __future__ import annotations

import contextlib
from email.utils import parsedate_to_datetime

import pytest
from gpuwatch_exporters.serving.web.message import BadRequestError, Request, Response, parse_head, render_head
from hypothesis import given
from hypothesis import strategies as st


def test_a_request_as_prometheus_sends_it() -> None:
    request = parse_head(
        b"GET /metrics?x=1 HTTP/1.1\r\nHost: node-1:9437\r\nUser-Agent: Prometheus/2.42\r\n"
        b"Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip"
    )
    assert (request.method, request.path, request.keep_alive, request.body_bytes) == ("GET", "/metrics", True, 0)
    assert request.headers["host"] == "node-1:9437"
    assert request.takes_gzip()


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.1\r\nConnection: close", False),
        (b"GET / HTTP/1.1\r\nConnection: Keep-Alive, Close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", False),
    ],
)
def test_a_connection_is_kept_as_the_version_has_it(line: bytes, kept: bool) -> None:
    assert parse_head(line).keep_alive == kept


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True), ("deflate, GZIP", True), ("gzip;q=0.5", True), ("*", True), ("br", False), ("", False),
        ("gzip;q=0", False), ("gzip; q=0.000", False), ("gzip;q=1.0", True), ("x-gzipped", False),
    ],
)  # fmt: skip
def test_gzip_is_sent_to_who_takes_it(accepted: str, packed: bool) -> None:
    assert Request("GET", "/", {"accept-encoding": accepted}, True).takes_gzip() == packed


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/1.1 x", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),  # TLS on a plain port
        (b"GET / HTTP/2.0", 505),
        (b"GET / FTP/1.1", 400),
        (b"GET metrics HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\n: value", 400),
        (b"GET / HTTP/1.1\r\nBad Name: value", 400),
        (b"GET / HTTP/1.1\r\n folded: value", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1, 1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 65537", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3", 411),
    ],
)
def test_what_is_no_request_is_refused_with_a_status(head: bytes, status: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_head(head)
    assert caught.value.status == status


def test_a_proxys_form_of_the_target_names_its_path() -> None:
    assert parse_head(b"GET http://node:9437/metrics?x HTTP/1.1").path == "/metrics"
    assert parse_head(b"GET http://node HTTP/1.1").path == "/"


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(head: bytes) -> None:
    with contextlib.suppress(BadRequestError):
        parse_head(head)
    with contextlib.suppress(BadRequestError):
        parse_head(b"GET / HTTP/1.1\r\n" + head)


def test_an_answer_begins_with_what_clients_need() -> None:
    head = render_head(Response(404, b"gone\n", headers={"Allow": "GET"}), False, b"X-Frame-Options: deny\r\n").decode()
    lines = head.split("\r\n")
    assert lines[0] == "HTTP/1.1 404 Not Found"
    assert head.endswith("\r\n\r\n")
    assert {"Content-Length: 5", "Allow: GET", "Connection: close", "X-Frame-Options: deny"} <= set(lines)
    dated = next(line for line in lines if line.startswith("Date: "))
    assert parsedate_to_datetime(dated.removeprefix("Date: ")).tzinfo is not None
    assert "Connection" not in render_head(Response(200), True).decode()
