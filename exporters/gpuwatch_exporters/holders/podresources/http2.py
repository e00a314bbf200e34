"""One unary gRPC call over a unix socket (RFC 9113 and gRPC's mapping onto it), without a question's body.

A connection lives for one call: on a unix socket that costs some 0.1 ms, and there is nothing that goes stale when the
kubelet restarts, no descriptor held in between and no thread.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import NamedTuple

from gpuwatch_exporters.holders.holding import LookError, SourceOffError
from gpuwatch_exporters.holders.podresources.hpack import HeaderError, literal, named, status

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_ACK, _END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_STREAM = 1
_WINDOW = 2**31 - 1
_MAX_FRAME = 2**20
# Header table of size 0 (no state between header blocks), no push, all the window and large frames.
_OUR_SETTINGS = struct.pack("!HIHIHIHI", 0x1, 0, 0x2, 0, 0x4, _WINDOW, 0x5, _MAX_FRAME)
_STATUS_NAMES = {
    1: "cancelled", 2: "unknown", 4: "timeout", 5: "not_found", 7: "denied", 8: "exhausted", 12: "unimplemented",
    13: "internal", 14: "unavailable", 16: "unauthenticated",
}  # fmt: skip


class _Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    body: bytes


def call(path: str, method: str, seconds: float, max_bytes: int) -> memoryview:
    """The answer's message to an empty message sent to `method` ("/v1.PodResourcesLister/List").

    Raises SourceOffError when there is no socket at `path`; LookError for everything else: refused, denied, timeout
    (the whole call takes at most `seconds`), too_large (above max_bytes), bad_answer, or the status of gRPC.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            talk = _Talk(sock, time.monotonic() + seconds, max_bytes)
            talk.connect(path)
            talk.send_call(method, seconds)
            return talk.answer()
        except FileNotFoundError:
            raise SourceOffError("no_socket") from None
        except PermissionError:
            raise LookError("denied", f"{path} may not be opened by this user") from None
        except TimeoutError:
            raise LookError("timeout", f"{path} did not answer within {seconds:g} s") from None
        except ConnectionRefusedError:
            raise LookError("refused", f"nobody listens on {path}") from None
        except OSError as err:
            raise LookError("unavailable", f"{path}: {err}") from None


class _Talk:
    def __init__(self, sock: socket.socket, until: float, max_bytes: int) -> None:
        self._sock, self._until, self._max_bytes = sock, until, max_bytes
        self._unread = bytearray()

    def connect(self, path: str) -> None:
        self._limit()
        self._sock.connect(path)

    def send_call(self, method: str, seconds: float) -> None:
        headers = b"\x83\x86" + b"".join((  # POST, http
            literal(b"\x04", method.encode()), literal(b"\x01", b"localhost"),
            literal(b"\x0f\x10", b"application/grpc"), named(b"te", b"trailers"),
            named(b"grpc-timeout", b"%dm" % max(int(seconds * 1000), 1)),
        ))  # fmt: skip
        self._send(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            _frame(_SETTINGS, 0, 0, _OUR_SETTINGS),
            _frame(_WINDOW_UPDATE, 0, 0, struct.pack("!I", _WINDOW - 65535)),
            _frame(_HEADERS, _END_HEADERS, _STREAM, headers),
            _frame(_DATA, _END_STREAM, _STREAM, bytes(5)),  # a message of 0 bytes, not compressed
        )

    def answer(self) -> memoryview:
        data, answered = bytearray(), None
        while True:
            frame = self._next()
            if frame.stream != _STREAM:
                self._about_connection(frame)
                continue
            if frame.kind == _RST_STREAM:
                raise LookError("refused", "the call was reset by the other side")
            if frame.kind == _DATA:
                data += _unpadded(frame)
                if len(data) > self._max_bytes:
                    raise LookError("too_large", f"the answer is larger than {self._max_bytes} bytes")
            elif frame.kind == _HEADERS:
                answered = self._status(self._header_block(frame))
            else:
                continue
            if frame.flags & _END_STREAM:
                return _message(data, answered)

    def _about_connection(self, frame: _Frame) -> None:
        if frame.kind in (_SETTINGS, _PING) and not frame.flags & _ACK:
            with suppress(BrokenPipeError):  # a peer that has answered already may be gone
                self._send(_frame(frame.kind, _ACK, 0, frame.body if frame.kind == _PING else b""))
        elif frame.kind == _GOAWAY and int.from_bytes(frame.body[:4], "big") & _WINDOW < _STREAM:
            raise LookError("unavailable", "the other side closes the connection")

    @staticmethod
    def _status(block: bytes) -> int | None:
        try:
            return status(block)
        except HeaderError as err:
            raise LookError("bad_answer", str(err)) from None

    def _header_block(self, frame: _Frame) -> bytes:
        block = _unpadded(frame)[5 if frame.flags & _PRIORITY else 0 :]
        while not frame.flags & _END_HEADERS:  # nothing else may come between the parts of a block
            frame = self._next()
            block += frame.body
        return block

    def _next(self) -> _Frame:
        head = self._read(9)
        size = int.from_bytes(head[:3], "big")
        if size > _MAX_FRAME:
            raise LookError("bad_answer", "no HTTP/2 on this socket")
        return _Frame(head[3], head[4], int.from_bytes(head[5:9], "big") & _WINDOW, self._read(size))

    def _read(self, size: int) -> bytes:
        while len(self._unread) < size:
            self._limit()
            part = self._sock.recv(262144)
            if not part:
                raise LookError("unavailable", "the connection ended before the answer")
            self._unread += part
        out = bytes(self._unread[:size])
        del self._unread[:size]
        return out

    def _send(self, *parts: bytes) -> None:
        self._limit()
        self._sock.sendall(b"".join(parts))

    def _limit(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def _unpadded(frame: _Frame) -> bytes:
    if not frame.flags & _PADDED:
        return frame.body
    return frame.body[1 : len(frame.body) - frame.body[0]]


def _message(data: bytearray, answered: int | None) -> memoryview:
    if answered:
        name = _STATUS_NAMES.get(answered, f"status_{answered}")
        raise LookError(name, f"the kubelet answered with gRPC status {answered} ({name})")
    size = int.from_bytes(data[1:5], "big")
    if len(data) < 5 or len(data) != 5 + size or data[0]:
        raise LookError("bad_answer", "the answer holds no whole message")
    return memoryview(bytes(data))[5:]
