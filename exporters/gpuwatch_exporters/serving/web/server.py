"""The loop that accepts, reads, asks the handler and writes."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable

from gpuwatch_exporters.serving.web.connection import READ, Connection
from gpuwatch_exporters.serving.web.door import Door
from gpuwatch_exporters.serving.web.limits import Limits
from gpuwatch_exporters.serving.web.message import BadRequestError, Request, Response, render_head
from gpuwatch_exporters.serving.web.settings import Answer, Settings
from gpuwatch_exporters.serving.web.slow import SlowLane

log = logging.getLogger(__name__)


class Server:
    """Serves `handler` on a listening socket, on one daemon thread."""

    def __init__(
        self,
        listener: socket.socket,
        handler: Callable[[Request], Answer],
        settings: Settings,
        limits: Limits | None = None,
    ) -> None:
        self._handler = handler
        self._settings = settings
        self._limits = limits or Limits()
        self._selector = selectors.DefaultSelector()
        self._door = Door(listener, self._selector)
        self._slow: SlowLane[tuple[Connection, Request]] = SlowLane()
        self._selector.register(self._slow.woken, READ)
        self._connections: set[Connection] = set()
        self._swept = 0.0
        self._round_at = time.monotonic()
        self._generation = settings.generation
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Closes everything; waits at most so long for the thread."""
        self._stopping = True
        self._slow.wake()
        if self._thread.is_alive():
            self._thread.join(seconds)
        else:  # never started
            self._close_all()

    def silent_seconds(self) -> float:
        """How long ago the loop last came round, which it does at least every few seconds while it lives."""
        return time.monotonic() - self._round_at

    def _run(self) -> None:
        while not self._stopping:
            self._round_at = time.monotonic()
            try:
                self._turn()
            except Exception:  # a fault in one turn must not end the service
                log.exception("fault in the HTTP loop")
                time.sleep(0.1)
        self._close_all()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._limits.sweep):
            if isinstance(key.data, Connection):
                self._serve(key.data, events)
            elif key.fileobj is self._door.listener:
                self._accept()
            else:
                self._take_slow_answers()
        if self._settings.generation != self._generation:
            self._retire_old()
        self._sweep()

    def _accept(self) -> None:
        for sock in self._door.come():
            if len(self._connections) >= self._limits.connections and not self._make_room():
                sock.close()
            else:
                self._open(sock)
        if self._door.rests:
            self._make_room()

    def _open(self, sock: socket.socket) -> None:
        self._settings.refresh()
        tls = self._settings.tls
        if tls is not None:
            try:
                sock = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError) as err:
                log.debug("connection not taken: %s", err)
                sock.close()
                return
        connection = Connection(sock, self._limits, self._settings.generation, tls is not None)
        self._connections.add(connection)
        # The request is often there already, and is then answered without a look at the selector.
        self._serve(connection, READ)

    def _make_room(self) -> bool:
        """Closes the connection that is idle for longest, else the one that has owed its request for longest: whoever
        holds many open and asks nothing shuts nobody out who asks at once."""
        idle = [each for each in self._connections if each.idle]
        leave = idle or [each for each in self._connections if each.owing]
        if leave:
            self._close(min(leave, key=lambda each: each.deadline))
        return bool(leave)

    def _serve(self, connection: Connection, events: int) -> None:
        try:
            if connection.lingering:
                connection.read_away()
                return
            if connection.handshaking:
                if not connection.handshake():
                    self._watch(connection)
                    return
                if not self._settings.admits(connection.sock):  # type: ignore[arg-type]
                    self._close(connection)
                    return
            if connection.outgoing and not connection.flush():
                self._watch(connection)
                return
            if events & READ:
                connection.receive()
            self._answer(connection)
        except OSError as err:
            log.debug("connection ended: %s", err)
            self._close(connection)
        except Exception:  # a fault that one connection meets again and again must not hold up the others
            log.exception("fault in a connection, which is ended")
            self._close(connection)

    def _answer(self, connection: Connection) -> None:
        """Answers the requests of the buffer in order, until one has to wait."""
        while not connection.answering and not connection.closing:
            if connection.outgoing and not connection.flush():
                break
            try:
                request = connection.next_request()
            except BadRequestError as err:
                connection.bad = True
                self._queue(connection, None, Response(err.status, f"{err.told}\n".encode()))
                break
            if request is None:
                break
            self._handle(connection, request)
        if (not connection.outgoing or connection.flush()) and connection.closing and not connection.linger():
            self._close(connection)
            return
        self._watch(connection)

    def _handle(self, connection: Connection, request: Request) -> None:
        try:
            answer = self._handler(request)
        except Exception:
            log.exception("fault while answering %s", request.path)
            answer = Response(500, b"internal error\n")
        if isinstance(answer, Response):
            self._queue(connection, request, answer)
            return
        connection.await_answer()
        if not self._slow.give(answer, (connection, request)):
            self._queue(connection, request, Response(503, b"busy\n", headers={"Retry-After": "1"}))

    def _queue(self, connection: Connection, request: Request | None, response: Response) -> None:
        current = connection.generation == self._settings.generation
        keep = request is not None and request.keep_alive and current and not self._stopping
        head = render_head(response, keep, self._settings.header_lines)
        connection.queue(head, b"" if request is not None and request.method == "HEAD" else response.body)
        connection.closing = not keep

    def _take_slow_answers(self) -> None:
        for (connection, request), response in self._slow.take():
            if connection not in self._connections:  # gone meanwhile
                continue
            self._queue(connection, request, response)
            try:
                self._answer(connection)
            except OSError:
                self._close(connection)

    def _watch(self, connection: Connection) -> None:
        # While an answer is awaited or written, nothing more is read: a client cannot fill the memory ahead.
        events = 0 if connection.answering and connection.incoming else connection.events
        key = self._selector.get_map().get(connection.sock)
        if events == 0:
            if key is not None:
                self._selector.unregister(connection.sock)
        elif key is None:
            self._selector.register(connection.sock, events, connection)
        elif key.events != events:
            self._selector.modify(connection.sock, events, connection)

    def _sweep(self) -> None:
        now = time.monotonic()
        if now - self._swept < self._limits.sweep:
            return
        self._swept = now
        self._door.open_again()
        for connection in [each for each in self._connections if now > each.deadline]:
            self._close(connection)

    def _retire_old(self) -> None:
        """After a change of the web configuration, nobody stays under the old one."""
        self._generation = self._settings.generation
        for connection in [each for each in self._connections if each.idle]:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(connection.sock)
            connection.close()

    def _close_all(self) -> None:
        for connection in list(self._connections):
            self._close(connection)
        self._selector.close()
        self._door.listener.close()
        self._slow.close()
