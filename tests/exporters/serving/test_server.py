"""The HTTP server on a real socket: many at once, slow ones, rude ones."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest
from gpuwatch_exporters.serving.open_access import OpenAccess
from gpuwatch_exporters.serving.web.limits import Limits
from gpuwatch_exporters.serving.web.message import MAX_HEAD_BYTES, Request, Response
from gpuwatch_exporters.serving.web.server import Answer, Server

from tests.exporters.serving.wire import ask, connected, ended, read_reply
from tests.servers import wait_for

pytestmark = pytest.mark.server
BIG = bytes(range(256)) * 4096 * 8  # 8 MB: more than a socket's buffers hold
GET = b"GET / HTTP/1.1\r\n\r\n"
QUICK = Limits(request=0.15, answer=0.3, idle=0.2, sweep=0.02)


@contextlib.contextmanager
def server(handler: Callable[[Request], Answer], limits: Limits | None = None) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    port = listener.getsockname()[1]
    made = Server(listener, handler, OpenAccess(), limits)
    made.start()
    try:
        yield port
    finally:
        made.stop(5)


def hello(request: Request) -> Answer:
    if request.path == "/big":
        return Response(200, BIG)
    if request.path == "/fault":
        raise RuntimeError("a fault of the handler")
    return Response(200, f"{request.method} {request.path}".encode())


def test_requests_on_one_connection_are_answered_in_order() -> None:
    with server(hello) as port, connected(port) as sock:
        for path in ("/a", "/b"):
            sock.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            assert read_reply(sock).body == f"GET {path}".encode()
        sock.sendall(b"GET /c HTTP/1.1\r\n\r\nGET /d HTTP/1.1\r\nConnection: close\r\n\r\n")
        both = b""
        while part := sock.recv(4096):
            both += part
        assert both.index(b"GET /c") < both.index(b"GET /d")


def test_a_request_may_come_byte_by_byte() -> None:
    with server(hello) as port, connected(port) as sock:
        for at in range(len(GET)):
            sock.sendall(GET[at : at + 1])
        assert read_reply(sock).body == b"GET /"


def test_a_body_is_stepped_over() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(b"POST /a HTTP/1.1\r\nContent-Length: 18\r\n\r\n" + GET + b"GET /b HTTP/1.1\r\n\r\n")
        assert read_reply(sock).body == b"POST /a"
        assert read_reply(sock).body == b"GET /b"


def test_head_has_the_length_and_no_body() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(b"HEAD /big HTTP/1.1\r\n\r\n" + GET)
        held = b""
        while b"GET /" not in held:
            held += sock.recv(4096)
        first, _, rest = held.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(BIG)}".encode() in first
        assert rest.startswith(b"HTTP/1.1 200 OK")


def test_a_large_answer_arrives_whole_at_a_slow_reader() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(b"GET /big HTTP/1.1\r\n\r\n")
        with connected(port) as other:  # served meanwhile
            other.sendall(GET)
            assert read_reply(other).status == 200
        assert read_reply(sock).body == BIG


def test_a_fault_of_the_handler_is_an_answer_and_the_next_request_is_served() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(b"GET /fault HTTP/1.1\r\n\r\n")
        assert read_reply(sock).status == 500
        sock.sendall(GET)
        assert read_reply(sock).status == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * (MAX_HEAD_BYTES + 1), 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * (MAX_HEAD_BYTES + 1) + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"a" * 50_000, 413),
    ],
)
def test_what_is_no_request_is_answered_and_the_connection_ends(request_: bytes, status: int) -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(request_)
        assert read_reply(sock).status == status
        assert ended(sock)


def test_who_sends_on_after_a_refusal_still_reads_it() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n")
        for _ in range(20):
            sock.sendall(b"a" * 50_000)
            select.select([], [sock], [], 0.01)
        assert read_reply(sock).status == 413
        assert ended(sock)


def test_who_sends_on_for_ever_after_a_refusal_is_cut_off() -> None:
    with server(hello, Limits(linger=0.1, sweep=0.02)) as port, connected(port) as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        with pytest.raises(ConnectionError):
            send_without_end(sock)


def send_without_end(sock: socket.socket) -> None:
    while True:
        sock.sendall(b"a" * 1000)


def test_two_hundred_clients_at_once_are_all_served() -> None:
    with server(hello) as port:
        socks = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(200)]
        try:
            for sock in socks:
                sock.sendall(GET)
            assert [read_reply(sock).status for sock in socks] == [200] * 200
        finally:
            for sock in socks:
                sock.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: a"])
def test_who_does_not_finish_a_request_is_sent_away(sent: bytes) -> None:
    with server(hello, QUICK) as port, connected(port) as sock:
        sock.sendall(sent)
        assert ended(sock)


def test_a_request_that_drips_in_is_sent_away_although_bytes_keep_coming() -> None:
    with server(hello, QUICK) as port, connected(port) as sock:
        began = time.monotonic()
        while not select.select([sock], [], [], 0.01)[0]:
            assert time.monotonic() - began < 3
            with contextlib.suppress(ConnectionError):
                sock.sendall(b"X")
        assert ended(sock)


def test_who_does_not_take_the_answer_is_sent_away() -> None:
    with server(hello, QUICK) as port, connected(port) as sock:
        sock.sendall(b"GET /big HTTP/1.1\r\n\r\n")
        time.sleep(0.5)  # longer than an answer may take
        with pytest.raises((AssertionError, ConnectionError)):
            read_reply(sock)


def test_an_idle_connection_ends_after_its_time_and_not_before() -> None:
    with server(hello, QUICK) as port, connected(port) as sock:
        sock.sendall(GET)
        assert read_reply(sock).status == 200
        began = time.monotonic()
        assert ended(sock)
        assert time.monotonic() - began > 0.1


def test_beyond_the_number_the_longest_idle_gives_way_and_who_is_busy_does_not() -> None:
    with server(hello, Limits(connections=3)) as port, contextlib.ExitStack() as stack:
        idle, younger, busy = (stack.enter_context(connected(port)) for _ in range(3))
        for sock in (idle, younger):
            sock.sendall(GET)
            assert read_reply(sock).status == 200
        busy.sendall(b"GET /half HTTP/1.1\r\n")
        assert ask(port, GET).status == 200  # the newcomer is served
        assert ended(idle)
        busy.sendall(b"\r\n")
        assert read_reply(busy).body == b"GET /half"


def test_who_holds_many_connections_and_does_not_ask_shuts_nobody_out() -> None:
    with server(hello, Limits(connections=3)) as port, contextlib.ExitStack() as stack:
        first, *others = (stack.enter_context(connected(port)) for _ in range(3))
        for sock in others:
            sock.sendall(b"GET")
        assert ask(port, GET).status == 200
        assert ended(first)  # it owed its request for longest


def test_beyond_the_number_of_busy_ones_a_newcomer_is_turned_away() -> None:
    go, began = threading.Event(), threading.Semaphore(0)

    def handler(_: Request) -> Answer:
        def slow() -> Response:
            began.release()
            assert go.wait(10)
            return Response(200, b"slow")

        return slow

    with server(handler, Limits(connections=1)) as port, contextlib.ExitStack() as stack:
        busy = stack.enter_context(connected(port))
        busy.sendall(GET)
        assert began.acquire(timeout=10)
        assert ended(stack.enter_context(connected(port)))
        go.set()
        assert read_reply(busy).body == b"slow"


def test_a_slow_answer_holds_up_nobody_else() -> None:
    go = threading.Event()

    def handler(request: Request) -> Answer:
        def slow() -> Response:
            assert go.wait(10)
            return Response(200, b"slow")

        return slow if request.path == "/slow" else Response(200, b"quick")

    with server(handler) as port, connected(port) as sock:
        sock.sendall(b"GET /slow HTTP/1.1\r\n\r\n" + GET)  # the second waits its turn
        assert ask(port, GET).body == b"quick"
        go.set()
        assert read_reply(sock).body == b"slow"
        assert read_reply(sock).body == b"quick"


def test_who_leaves_before_a_slow_answer_harms_nothing_and_a_flood_of_them_is_refused() -> None:
    go = threading.Event()

    def handler(request: Request) -> Answer:
        def slow() -> Response:
            go.wait(10)
            return Response(200, b"slow")

        return slow

    with server(handler) as port:
        with connected(port) as sock:
            sock.sendall(GET)
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(connected(port)) for _ in range(30)]
            for sock in socks:
                sock.sendall(GET)
            wait_for("the refused", lambda: len(select.select(socks, [], [], 0)[0]) >= 12, every=0.01)
            go.set()
            assert {read_reply(sock).status for sock in socks} == {200, 503}


def test_a_loop_that_is_held_up_is_told() -> None:
    go = threading.Event()

    def handler(_: Request) -> Answer:
        go.wait(10)
        return Response(200)

    listener = socket.create_server(("127.0.0.1", 0))
    made = Server(listener, handler, OpenAccess(), QUICK)
    made.start()
    with connected(listener.getsockname()[1]) as sock:
        sock.sendall(GET)
        wait_for("silence", lambda: made.silent_seconds() > 0.3, seconds=5, every=0.01)
        go.set()
        wait_for("the next round", lambda: made.silent_seconds() < 0.2, seconds=5, every=0.01)
    made.stop(5)


def test_a_fault_of_slow_work_is_an_answer() -> None:
    def handler(_: Request) -> Answer:
        def slow() -> Response:
            raise RuntimeError("a fault")

        return slow

    with server(handler) as port:
        assert ask(port, GET).status == 500


def test_out_of_descriptors_the_server_rests_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with server(hello) as port, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(3)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 20, limit[1]))
        held = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open("/dev/null", os.O_RDONLY))
            for sock in clients:
                sock.settimeout(10)
                sock.connect(("127.0.0.1", port))
                sock.sendall(GET)
            wait_for("the rest", lambda: "no connection can be taken" in caplog.text, every=0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
            for each in held:
                os.close(each)
        assert [read_reply(sock).status for sock in clients] == [200] * 3
    assert caplog.text.count("no connection can be taken") == 1


def test_garbage_ends_nobody_elses_connection_and_leaves_no_descriptor_behind() -> None:
    random = Random(5)
    pieces = [
        b"GET ",
        b"/ ",
        b"HTTP/1.1",
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Length: 5",
        b"Content-Length: -1",
        b": ",
        b"\0",
    ]
    with server(hello) as port, connected(port) as steady:
        steady.sendall(GET)
        assert read_reply(steady).status == 200
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(300):
            with connected(port) as sock, contextlib.suppress(ConnectionError):
                for _ in range(random.randrange(1, 5)):
                    sock.sendall(random.choice([random.randbytes(50), b"".join(random.choices(pieces, k=8))]))
        steady.sendall(GET)
        assert read_reply(steady).status == 200
        wait_for("the descriptors", lambda: len(os.listdir("/proc/self/fd")) <= before, seconds=5, every=0.02)


def test_stopping_ends_open_connections_and_frees_the_port() -> None:
    with server(hello) as port, connected(port) as sock:
        sock.sendall(GET)
        assert read_reply(sock).status == 200
        stopped = port
    wait_for("the port to be free", lambda: not _listens(stopped), every=0.01)


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
