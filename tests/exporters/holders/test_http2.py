"""What a peer may send on a unix socket: every part of HTTP/2 that a gRPC server may use, and what is none."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuwatch_exporters.holders.holding import LookError, SourceOffError
from gpuwatch_exporters.holders.podresources.call import call

from tests.exporters.holders.trees import ordinary_user

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 4, 8, 32
METHOD = "/v1.PodResourcesLister/List"
STATUS = b"\x00\x0bgrpc-status"
OK_STATUS = STATUS + b"\x010"
HELLO = b"\x00\x00\x00\x00\x05hello"


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


GREETING = frame(SETTINGS, 0, 0, b"")
START = GREETING + frame(HEADERS, END_HEADERS, 1, b"\x88")
QUESTION = frame(DATA, END_STREAM, 1, bytes(5))
TRAILER = frame(HEADERS, END_STREAM | END_HEADERS, 1, OK_STATUS)


@contextlib.contextmanager
def peer(path: Path, *parts: bytes, hold: bool = False) -> Iterator[None]:
    """Hears one call, sends `parts` and closes; `hold` leaves the connection open until the test is over."""
    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def run() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                heard = b""
                while not heard.endswith(QUESTION):
                    heard += connection.recv(4096)
                for part in parts:
                    connection.sendall(part)
                if hold:
                    done.wait(10)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(10)


def asked(path: Path, seconds: float = 5, max_bytes: int = 1000) -> bytes:
    return bytes(call(str(path), METHOD, seconds, max_bytes))


def refused(path: Path, *parts: bytes, hold: bool = False, seconds: float = 5) -> str:
    with peer(path, *parts, hold=hold), pytest.raises((LookError, SourceOffError)) as err:
        asked(path, seconds)
    return str(err.value.reason)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((START, frame(DATA, 0, 1, HELLO), TRAILER), id="plain"),
        pytest.param((START, frame(DATA, 0, 1, HELLO[:3]), frame(DATA, 0, 1, HELLO[3:]), TRAILER), id="in parts"),
        pytest.param((*(bytes((b,)) for b in START + frame(DATA, 0, 1, HELLO) + TRAILER),), id="byte by byte"),
        pytest.param((START, frame(DATA, END_STREAM, 1, HELLO)), id="no trailer"),
        pytest.param((START, frame(DATA, PADDED, 1, b"\x03" + HELLO + bytes(3)), TRAILER), id="padded"),
        pytest.param(
            (
                START,
                frame(DATA, 0, 1, HELLO),
                frame(HEADERS, END_STREAM | PRIORITY, 1, bytes(5) + OK_STATUS[:4]),
                frame(CONTINUATION, END_HEADERS, 1, OK_STATUS[4:]),
            ),
            id="continued",
        ),
        pytest.param((START, frame(PING, 0, 0, b"12345678"), frame(DATA, 0, 1, HELLO), TRAILER), id="pinged"),
        pytest.param((START, frame(GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0"), frame(DATA, 0, 1, HELLO), TRAILER), id="last"),
        pytest.param((START, frame(0xBE, 0, 1, b"?"), frame(DATA, 0, 1, HELLO), TRAILER), id="unknown frame"),
    ],
)
def test_an_answer(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    with peer(tmp_path / "s", *parts):
        assert asked(tmp_path / "s") == b"hello"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        pytest.param((START, frame(RST_STREAM, 0, 1, bytes(4))), "refused", id="reset"),
        pytest.param((GREETING, frame(GOAWAY, 0, 0, bytes(8))), "unavailable", id="goes away"),
        pytest.param((START, frame(DATA, 0, 1, HELLO)), "unavailable", id="cut off"),
        pytest.param((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "bad_answer", id="another protocol"),
        pytest.param((frame(SETTINGS, 0, 0, b"?"),), "bad_answer", id="broken settings"),
        pytest.param((), "unavailable", id="closed without a word"),
        pytest.param((START, TRAILER), "bad_answer", id="no message"),
        pytest.param((START, frame(DATA, END_STREAM, 1, HELLO[:-1])), "bad_answer", id="half a message"),
        pytest.param((START, frame(DATA, END_STREAM, 1, b"\x01" + HELLO[1:])), "bad_answer", id="compressed"),
        pytest.param((START, frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x00\x0bgrpc")), "bad_answer", id="header"),
        pytest.param((START, frame(DATA, 0, 1, bytes(1001))), "too_large", id="too large"),
        pytest.param((START, frame(HEADERS, 5, 1, b"\x00\x0bgrpc-status\x0213")), "internal", id="failed"),
        pytest.param(
            (START, frame(HEADERS, 5 | PRIORITY, 1, bytes(5) + b"\x00\x0bgrpc-status\x017")), "denied", id="priority"
        ),
    ],
)
def test_what_is_no_answer(tmp_path: Path, parts: tuple[bytes, ...], reason: str) -> None:
    assert refused(tmp_path / "s", *parts) == reason


def test_a_peer_that_says_nothing_or_stops_is_left_at_the_deadline(tmp_path: Path) -> None:
    assert refused(tmp_path / "a", hold=True, seconds=0.1) == "timeout"
    with pytest.raises(LookError, match="within 0 s"):
        asked(tmp_path / "a", seconds=0)
    assert refused(tmp_path / "b", START, frame(DATA, 0, 1, HELLO), hold=True, seconds=0.1) == "timeout"


def test_a_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(tmp_path / "s"))
    with pytest.raises(LookError) as err:
        asked(tmp_path / "s")
    assert err.value.reason == "refused"


def test_a_socket_that_may_not_be_opened(everybodys: Path) -> None:
    path = everybodys / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        path.chmod(0)
        with ordinary_user(), pytest.raises(LookError) as err:
            asked(path)
    assert err.value.reason == "denied"


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for n in range(20):
        with pytest.raises(SourceOffError):
            asked(tmp_path / f"none-{n}")
        assert refused(tmp_path / f"s{n}", START) == "unavailable"
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"\x20" + STATUS + b"\x0213", "internal"),  # a new size of the header table first
        (b"\x40\x0bgrpc-status\x0212", "unimplemented"),  # to be remembered
        (b"\x10\x88" + bytes.fromhex("9acac8b21234da8f") + b"\x018", "exhausted"),  # Huffman's code, as Go writes it
        (b"\x5f\x10application/grpc" + STATUS + b"\x0216", "unauthenticated"),  # after a name by number
        (b"\x0f\x10\x10application/grpc" + STATUS + b"\x015", "not_found"),  # after a number in two bytes
        (STATUS + b"\x82\x08\x9f", "status_129"),  # digits in Huffman's code
        (STATUS + b"\x0242", "status_42"),
    ],
)
def test_the_status_however_its_header_is_written(tmp_path: Path, block: bytes, reason: str) -> None:
    assert refused(tmp_path / "s", START, frame(HEADERS, END_STREAM | END_HEADERS, 1, block)) == reason
    short = frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x88" + block.removeprefix(b"\x20"))  # headers alone
    assert refused(tmp_path / "t", GREETING, short) == reason


@pytest.mark.server
def test_h2_is_imported_for_a_kubelet_alone_and_its_absence_is_told(tmp_path: Path) -> None:
    code = f"""
import sys
from gpuwatch_exporters.holders.holding import LookError, SourceOffError
from gpuwatch_exporters.holders.podresources.call import call
for path in ("none", "s"):
    for without in (False, True):
        if without:
            sys.modules["h2"] = None
        try:
            call({str(tmp_path)!r} + "/" + path, "{METHOD}", 5, 1000)
        except (SourceOffError, LookError) as err:
            print(path, err.reason, err)
        if path == "none":
            print(any(each.split(".")[0] == "h2" for each, made in sys.modules.items() if made))
"""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        said = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout
    told = "s not_installed a kubelet is here, and h2 is not installed: pip install 'gpuwatch-stack[exporter]'"
    assert said.splitlines() == ["none no_socket no_socket", "False"] * 2 + [told] * 2
