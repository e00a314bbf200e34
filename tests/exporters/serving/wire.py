"""HTTP over a bare socket: what goes over the wire, without a client that smooths it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import NamedTuple


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@contextlib.contextmanager
def connected(port: int, seconds: float = 10) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        yield sock


def read_reply(sock: socket.socket, *, head: bool = False) -> Reply:
    """One answer and not a byte of the next; AssertionError when the connection ends before it does."""
    lines = b""
    while not lines.endswith(b"\r\n\r\n"):
        part = sock.recv(1)
        assert part, f"closed after {lines!r}"
        lines += part
    first, *others = lines.decode().removesuffix("\r\n\r\n").split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in others)}
    length = 0 if head else int(headers["content-length"])
    body = bytearray()
    while len(body) < length:
        part = sock.recv(min(1 << 20, length - len(body)))
        assert part, "closed within the body"
        body += part
    return Reply(int(first.split(" ")[1]), headers, bytes(body))


def ask(port: int, request: bytes, *, head: bool = False) -> Reply:
    """One request on a connection of its own."""
    with connected(port) as sock:
        sock.sendall(request)
        return read_reply(sock, head=head)


def ended(sock: socket.socket) -> bool:
    """Whether the other side ends the connection, within the socket's timeout."""
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def everything(sock: socket.socket) -> bytes:
    """All that still comes until the other side ends the connection."""
    held = b""
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65536):
            held += part
    return held
