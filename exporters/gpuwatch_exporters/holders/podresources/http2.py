"""One request and its answer over a connected socket; the frames, windows and header tables are h2's.

This module imports h2, which the base installation does not have: call.py imports it when a kubelet is there.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame

from gpuwatch_exporters.holders.holding import LookError

_READ_BYTES = 2**18
# An answer above max_bytes ends the call, so that windows need not hold anything back.
_WINDOW = 2**31 - 1
_SETTINGS = {SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW}


@dataclass
class Answer:
    """What has arrived: the headers and trailers together, and the bytes of the body."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False


class _Connection(H2Connection):
    """h2 takes any GOAWAY for the end; a server that stops in an orderly way still answers the calls that it has."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[events.Event]]:
        return ([], []) if frame.last_stream_id else super()._receive_goaway_frame(frame)


class Exchange:
    """One request on `sock`; every wait ends at `until` on time.monotonic() with a TimeoutError."""

    def __init__(self, sock: socket.socket, until: float, max_bytes: int) -> None:
        self._sock, self._until, self._max_bytes = sock, until, max_bytes
        # A server's grpc-message may end in a blank, which h2 would not let pass.
        self._h2 = _Connection(H2Configuration(header_encoding=False, validate_inbound_headers=False))
        self._h2.local_settings = Settings(client=True, initial_values=_SETTINGS)
        self._answer = Answer()
        self._speaks: bool | None = None  # HTTP/2; None before the first byte

    def ask(self, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        """The whole answer to a request.

        Raises LookError refused (reset), unavailable (cut off, goes away), too_large, bad_answer (no HTTP/2); OSError.
        """
        try:
            return self._ask(headers, body)
        except H2Error as err:
            raise LookError("bad_answer", f"no HTTP/2 that can be read: {err}") from None

    def _ask(self, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW - self._h2.inbound_flow_control_window)
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, headers)
        self._h2.send_data(stream, body, end_stream=True)
        self._send()
        while not self._answer.ended:
            self._limit()
            self._receive(self._sock.recv(_READ_BYTES))
            with suppress(BrokenPipeError):  # a peer that has answered already may be gone
                self._send()
        return self._answer

    def _receive(self, part: bytes) -> None:
        if not part and self._speaks is False:  # h2 waits for the end of what looks like a large frame
            raise LookError("bad_answer", "no HTTP/2 on this socket")
        if not part:
            raise LookError("unavailable", "the connection ended before the answer")
        happened = self._h2.receive_data(part)
        self._speaks = self._speaks or bool(happened)
        for event in happened:
            self._take(event)

    def _take(self, event: events.Event) -> None:
        if isinstance(event, events.ResponseReceived | events.TrailersReceived):
            self._answer.headers.update((bytes(name), bytes(value)) for name, value in event.headers or ())
        elif isinstance(event, events.DataReceived):
            self._answer.body += event.data or b""
            if len(self._answer.body) > self._max_bytes:
                raise LookError("too_large", f"the answer is larger than {self._max_bytes} bytes")
        elif isinstance(event, events.StreamEnded):
            self._answer.ended = True
        elif isinstance(event, events.StreamReset):
            raise LookError("refused", "the call was reset by the other side")
        elif isinstance(event, events.ConnectionTerminated):
            raise LookError("unavailable", "the other side closes the connection")

    def _send(self) -> None:
        if pending := self._h2.data_to_send():
            self._limit()
            self._sock.sendall(pending)

    def _limit(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
