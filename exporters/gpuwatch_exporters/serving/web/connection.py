"""One client's connection: what was read of its next request, what is still to be written, and until when."""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time

from gpuwatch_exporters.serving.web.limits import Limits
from gpuwatch_exporters.serving.web.message import MAX_HEAD_BYTES, BadRequestError, Request, parse_head

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_CHUNK = 65_536
_END = b"\r\n\r\n"


class Connection:
    """A non-blocking socket and its buffers. `deadline` is a monotonic time.

    The methods raise OSError (ssl.SSLError is one) when the connection is of no more use.
    """

    def __init__(self, sock: socket.socket, limits: Limits, generation: int, tls: bool) -> None:
        self.sock = sock
        self._limits = limits
        self.tls = tls
        self.handshaking = tls
        self.certified = False
        self.generation = generation  # of the web configuration it was opened under
        self.incoming = bytearray()
        self.outgoing: list[memoryview] = []
        self.answering = False  # a request waits for its answer; the next one is not looked at
        self.closing = False  # ends when all is written
        self.bad = False  # what came was no request
        self.lingering = False  # all is written and this side ended
        self.served = 0
        self.events = READ
        self.deadline = time.monotonic() + self._limits.request
        self._skip = 0  # bytes of a body still to be stepped over

    @property
    def idle(self) -> bool:
        """Nothing is under way: may be closed without loss."""
        return self.served > 0 and not (self.incoming or self.outgoing or self.answering)

    @property
    def owing(self) -> bool:
        """It was given its time and has not sent a whole request."""
        return not (self.outgoing or self.answering or self.lingering or self.idle)

    def handshake(self) -> bool:
        """Goes on with the TLS handshake; True when it is done."""
        wanted = _tls_wants(self.sock.do_handshake)  # type: ignore[attr-defined]
        if wanted is None:
            self.handshaking = False
            self.certified = bool(self.sock.getpeercert())  # type: ignore[attr-defined]
            self.events = READ
            return True
        self.events = wanted
        return False

    def receive(self) -> None:
        """Reads what has come. ConnectionError at the other side's end."""
        while True:
            try:
                part = self.sock.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError as err:
                if _wanted(err) is None:
                    raise
                return
            if not part:
                raise ConnectionResetError("closed by the client")
            if not self.incoming and not self.answering:
                self.deadline = time.monotonic() + self._limits.request
            self.incoming += part
            # TLS may hold more that no readiness of the socket will tell; a plain socket is asked again when ready.
            if len(self.incoming) > MAX_HEAD_BYTES + _CHUNK or not (self.tls and self.sock.pending()):  # type: ignore[attr-defined]
                return

    def next_request(self) -> Request | None:
        """The next whole request of the buffer. BadRequestError when it never will be one."""
        if self._skip:
            gone = min(self._skip, len(self.incoming))
            del self.incoming[:gone]
            self._skip -= gone
            if self._skip:
                return None
        while self.incoming.startswith(b"\r\n"):  # some clients send one after a body
            del self.incoming[:2]
        end = self.incoming.find(_END)
        if end < 0 and len(self.incoming) <= MAX_HEAD_BYTES:
            return None
        if end < 0 or end > MAX_HEAD_BYTES:
            raise BadRequestError(431, "the request's head is too large")
        request = parse_head(bytes(self.incoming[:end]), self.certified)
        del self.incoming[: end + len(_END)]
        self._skip = request.body_bytes
        return request

    def await_answer(self) -> None:
        """The answer to the last request comes later."""
        self.answering = True
        self.deadline = time.monotonic() + self._limits.answer

    def queue(self, *parts: bytes) -> None:
        """Appends to what is to be written."""
        self.outgoing += [memoryview(part) for part in parts if part]
        self.answering = False
        self.served += 1
        self.deadline = time.monotonic() + self._limits.answer

    def linger(self) -> bool:
        """Whether the client may still be sending what nobody will answer. Then this side is ended and the rest is read
        away for a moment: closing a socket with unread bytes would destroy the answer on its way."""
        if not (self.bad or self._skip) or self.tls:
            return False
        self.sock.shutdown(socket.SHUT_WR)
        self.lingering = True
        self.events = READ
        self.deadline = time.monotonic() + self._limits.linger
        return True

    def read_away(self) -> None:
        """Forgets what has come. ConnectionError at the other side's end."""
        with contextlib.suppress(BlockingIOError):
            if not self.sock.recv(_CHUNK):
                raise ConnectionResetError("closed by the client")

    def close(self) -> None:
        """Ends it."""
        self.outgoing.clear()
        self.sock.close()

    def flush(self) -> bool:
        """Writes what the socket takes; True when nothing is left."""
        while self.outgoing:
            try:
                sent = self.sock.send(self.outgoing[0]) if self.tls else self.sock.sendmsg(self.outgoing[:16])
            except BlockingIOError:
                self.events = WRITE
                return False
            except OSError as err:
                wanted = _wanted(err)
                if wanted is None:
                    raise
                self.events = wanted
                return False
            self._sent(sent)
        self.events = READ
        self.deadline = time.monotonic() + (self._limits.request if self.incoming else self._limits.idle)
        return True

    def _sent(self, count: int) -> None:
        while count:
            first = self.outgoing[0]
            if count < len(first):
                self.outgoing[0] = first[count:]
                return
            count -= len(first)
            del self.outgoing[0]


def _tls_wants(step: object) -> int | None:
    try:
        step()  # type: ignore[operator]
    except OSError as err:
        wanted = _wanted(err)
        if wanted is None:
            raise
        return wanted
    return None


def _wanted(err: OSError) -> int | None:
    """What a TLS socket waits for, None for any other error. Without TLS the module ssl was never imported: 4 MB."""
    ssl = sys.modules.get("ssl")
    if ssl is None:
        return None
    if isinstance(err, ssl.SSLWantReadError):
        return READ
    return WRITE if isinstance(err, ssl.SSLWantWriteError) else None
